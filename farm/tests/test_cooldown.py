"""How long the cooldown after a job is."""

import pytest

from torchyard_farm.scheduling.cooldown import Cooldowns


@pytest.mark.parametrize(("took", "rest"), [(0.5, 0.0), (10.0, 0.5), (40.0, 2.0), (9000.0, 2.0)])
def test_a_machine_rests_for_a_share_of_what_it_did_and_not_for_long(
    took: float, rest: float
) -> None:
    cooldowns = Cooldowns()
    cooldowns.start("a", took, 100.0)
    assert cooldowns.is_cooling_down("a", 100.0) is (rest > 0)
    assert cooldowns.is_cooling_down("a", 100.0 + rest - 0.01) is (rest > 0)
    assert not cooldowns.is_cooling_down("a", 100.0 + rest)
    assert not cooldowns.is_cooling_down("b", 100.0)


def test_who_asks_again_asks_when_all_have_rested() -> None:
    cooldowns = Cooldowns()
    assert cooldowns.latest_end(100.0) == pytest.approx(100.05), (
        "not at once: others have to be asked, too"
    )
    cooldowns.start("a", 40.0, 100.0)
    cooldowns.start("b", 20.0, 100.0)
    assert cooldowns.latest_end(100.0) == 102.0
    assert cooldowns.latest_end(200.0) == pytest.approx(200.05)
