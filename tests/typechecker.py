"""beartype as conftest.py applies it: an int may stand where a float is annotated (PEP 484)."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
