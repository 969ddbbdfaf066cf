"""What a file is by its first bytes: pictures that a model can be shown, and names for what it cannot."""

_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_OTHERS = {
    b"%PDF-": "a PDF document; `pdftotext` makes text of it",
    b"PK\x03\x04": "a ZIP archive or a document packed as one; `unzip -l` lists it",
    b"\x1f\x8b": "compressed with gzip; `zcat` shows it",
    b"\x7fELF": "a compiled program",
    b"SQLite format 3\0": "an SQLite database; `sqlite3` reads it",
    b"\xff\xfe": "UTF-16 text; `iconv -f UTF-16 -t UTF-8` shows it",
    b"\xfe\xff": "UTF-16 text; `iconv -f UTF-16 -t UTF-8` shows it",
}


def picture_type(content: bytes) -> str:
    """The MIME type of a picture that providers accept; "" for anything else."""
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for magic, mime_type in _PICTURES.items() if content.startswith(magic)), "")


def other_type(content: bytes) -> str:
    """What a file that is neither text nor a picture seems to be, and what to do with it."""
    return next((words for magic, words in _OTHERS.items() if content.startswith(magic)), "binary data")
