"""Loading with old and new versions of `datasets`, each in an environment of its own; `make matrix` and `make compat` run it."""

import pytest
from environments import OFFLINE, VERSIONS, check_loading, python_of


@pytest.mark.parametrize("version", VERSIONS)
def test_a_checkout_loads_in_every_documented_way(version, checkout, tmp_path):
    check_loading(python_of(version), "folder", checkout, tmp_path / "home", **OFFLINE)
