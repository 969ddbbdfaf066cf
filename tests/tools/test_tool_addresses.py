"""Where `fetch` may go: only to URLs that say plainly where they lead, and only to the open internet (A35, A42)."""

import pytest
import yarl
from hypothesis import given
from hypothesis import strategies as st

from windlass.tools.addresses import check_url, is_public, plain_url
from windlass.wire.tools import ToolError

PRIVATE = [
    *("127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.127.255.255", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
    *("192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1"),
    *("fd12:3456::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::", "2001::1", "::7f00:1"),
    *("100::1", "2001:db8::1"),
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_on_the_open_internet_is_not_public(address: str) -> None:
    """A42: an agent could be told by a page to read the router, the cloud's credentials, or this very server."""
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_on_the_open_internet_is_public(address: str) -> None:
    """Nothing could be fetched."""
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "javascript:alert(1)", "//example.org/"),
        *("example.org", "http://", "http:///path", "https://:443/", "data:text/plain,x", "unix:///run/x.sock", ""),
        *("http://user@example.org/", "http://user:password@example.org/", "http://@example.org/"),
        *("http://example.org:22/", "http://example.org:25/", "http://example.org:0/", "http://example.org:99999/"),
        *("http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/"),
        *("http://017700000001/", "http://127.0.0.1/", "http://[::1]/", "http://[::ffff:7f00:1]/", "http://0/"),
        *("http://127.0.0.1./", "http://169.254.169.254/latest/", "http://[fe80::1%25eth0]/", "http://1.2.3.4.5/"),
        *(
            "http://exa mple.org/",
            "http://example.org/\n",
            "http://example.org\\@evil.org/",
            "http://example.org\0.evil/",
        ),
        *("http://exämple.org/", "http://p\u0430ypal.com/", "http://example。org/", "http://ex%61mple.org/"),
        *("http://-example.org/", "http://exa..mple.org/", "http://[example.org]/", "http://a\tb/", "http://[::1/"),
        *("http://①②⑦.⓪.⓪.①/", "http://example.org:80:80/", "http://" + "a" * 5000 + "/"),
    ],
)
def test_a_url_that_does_not_lead_plainly_to_the_web_is_refused(url: str) -> None:
    """A35: what people read and allow must be where it goes, whatever program reads it."""
    with pytest.raises(ToolError):
        check_url(url, allow_private=False)


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.org", "http://example.org/a?b=c#d", "https://xn--exmple-cua.org/", "https://example.org./"),
        *("https://example.org:8443/", "http://8.8.8.8/", "https://[2606:4700::1111]/", "https://3com.com/"),
    ],
)
def test_a_plain_url_is_taken(url: str) -> None:
    """Nothing could be fetched."""
    check_url(url, allow_private=False)


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("HTTPS://EXAMPLE.org", "https://example.org/"),
        ("https://example.org.:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org:80?b", "http://example.org/?b"),
        ("http://example.org:443/", "http://example.org:443/"),
        ("https://[2606:4700:0::1111]:8443/", "https://[2606:4700:0::1111]:8443/"),
        ("https://example.org/docs/../admin", "https://example.org/admin"),
        ("https://example.org/docs/%2e%2E/%61dmin/.", "https://example.org/admin/"),
        ("https://example.org/../..", "https://example.org/"),
        ("https://example.org/é%c3%a9|%2f%zz", "https://example.org/%C3%A9%C3%A9%7C%2F%25zz"),
    ],
)
def test_a_url_has_one_spelling(url: str, plain: str) -> None:
    """A28 A35: a rule about a host or a path would be got around by writing it in another way."""
    assert plain_url(url, allow_private=False) == plain
    assert plain_url(plain, allow_private=False) == plain


@given(
    rest=st.lists(
        st.sampled_from([*"aZ./?&=+%;@:[|~é", "%2e", "%2F", "%41", "%c3", "//", "/..", "/./"]), max_size=9
    ).map("".join)
)
def test_what_people_are_asked_for_is_what_the_library_sends(rest: str) -> None:
    """A26 I10: people would allow one page, and another would be fetched."""
    plain = plain_url(f"https://example.org/{rest}", allow_private=False)
    assert str(yarl.URL(plain)) == plain


def test_a_private_address_is_taken_when_the_user_allowed_it() -> None:
    """Whoever works on a web server of their own could not look at it."""
    assert check_url("http://127.0.0.1:8000/x", allow_private=True) == ("http", "127.0.0.1", 8000)
