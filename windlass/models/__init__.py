"""Providers behind one small streaming interface (`wire/model.py`): a request goes in, chunks come out.

`providers.py` builds the one the config names. `openai.py` speaks chat completions to hosted and local servers,
`responses.py` OpenAI's newer protocol, `anthropic.py` the Messages of Anthropic; `scripted.py` needs no key and does
what a script says, or is the demo of a first run.
"""
