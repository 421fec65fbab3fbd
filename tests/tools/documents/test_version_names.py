from sleuth.tools.documents.versions import LEAST_SHARED, parse_name, shared_text

LEASE = " ".join(f"Clause {number}: the tenant pays the rent of month {number} in advance." for number in range(30))


ORDERED = {
    "lease_v1.docx": "Lease v2.pdf", "lease.md": "lease-v2.md", "lease 9.txt": "lease 10.txt",
    "lease_v2.1.md": "lease_v2.10.md", "lease draft 3.md": "lease 1.md", "lease_old.md": "lease.md",
    "lease v7.md": "archive/LEASE (final).md", "lease final.md": "lease final 2.md",
    "lease 2024-01-31.md": "lease 2024-02-01.md", "租约 v1.md": "租约 v2.md",
}  # fmt: skip
OTHER = {"lease.md": "letter.md", "lease v1.md": "sublease v1.md", "v1": "a1"}


def test_names_of_versions_are_ordered() -> None:
    for older, newer in ORDERED.items():
        assert parse_name(older).base == parse_name(newer).base
        assert parse_name(older) < parse_name(newer)
    assert not [one for one, other in OTHER.items() if parse_name(one).base == parse_name(other).base]


def test_text_is_shared_in_spite_of_small_changes() -> None:
    assert shared_text(LEASE, LEASE) == 1
    assert shared_text(LEASE, LEASE.replace("month 7", "month seven")) > LEAST_SHARED
    assert shared_text(LEASE, LEASE + LEASE[:300].replace("tenant", "landlord")) > LEAST_SHARED
    assert shared_text(LEASE, LEASE.replace("the tenant pays", "a guest owes")) < LEAST_SHARED

    text = "租户每月提前支付租金，房东负责修理屋顶和窗户。"
    assert shared_text(text, text.replace("屋顶", "大门")) > LEAST_SHARED
    assert shared_text(text, "磨坊为附近的村庄磨麦子，现在已经关闭。") < 0.1

    assert [shared_text("one two", other) for other in ("one two", "one")] == [1, 0]
    assert shared_text("", "") == 1
