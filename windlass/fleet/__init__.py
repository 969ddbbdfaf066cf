"""Workers: processes that execute runs over a link, and the store and mailbox behind them."""
