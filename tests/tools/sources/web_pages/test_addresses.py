import pytest

from sleuth.tools.sources.web_pages.fetch import is_public

PUBLIC = ("93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946")
OTHER = (
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "100.100.100.200", "192.0.0.192", "224.0.0.1", "239.1.2.3", "255.255.255.255", "240.0.0.1"),
    *("168.63.129.16", "198.18.0.1", "203.0.113.5"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
    *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::", "::127.0.0.1", "fec0::1"),
    *("localhost", "", "1", "127.1"),
)


@pytest.mark.parametrize("address", [*PUBLIC, *OTHER])
def test_only_addresses_of_the_open_internet_are_public(address: str) -> None:
    assert is_public(address) == (address in PUBLIC)
