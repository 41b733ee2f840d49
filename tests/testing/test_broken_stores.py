"""Every fault is found: a store that has it fails the suite, at the check that is about it."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import pytest

from ledger.stores.memory import MemoryStore
from ledger.testing import StoreSuite, run
from ledger.testing.suite import checks
from tests.testing import broken_stores, places
from tests.testing.simple_stores import LinesStore, SimpleStore
from tests.testing.suites import LinesSuite, MemorySuite, SimpleSuite

FOUND_BY: dict[str, str] = {
    "ChecksThenInserts": "threads_have_one_winner_per_expect",
    "ReadsThenWrites": "threads_lose_nothing",
    "IgnoresExpect": "expect_is_exact conflict_says_expected_and_found",
    "ExpectsAtLeast": "expect_is_exact threads_have_one_winner_per_expect",
    "ExpectsOneMore": "expect_is_exact appending_nothing",
    "ExpectsNothingAsNone": "expect_is_exact conflict_says_expected_and_found",
    "ConflictsWithoutFields": "conflict_says_expected_and_found",
    "ConflictsTheWrongWayRound": "conflict_says_expected_and_found",
    "ConflictsOnNothing": "appending_nothing",
    "AppendsAfterAConflict": "expect_is_exact after_a_conflict_the_retry_adds_once",
    "ShowsPartsOfBatches": "readers_see_whole_batches threads_lose_nothing",
    "KeepsWhatCameBeforeABadRecord": "a_bad_record_refuses_its_batch",
    "ReversesBatches": "a_long_batch_keeps_its_order first_records_are_one_and_two",
    "CountsFromZero": "places_are_dense",
    "CountsFromTheRead": "read_after_gives_the_rest",
    "SkipsOneMore": "read_after_gives_the_rest",
    "DropsDuplicates": "equal_records_are_all_kept",
    "TellsHowManyWereAdded": "append_returns_the_count",
    "ReadsNothingBeyondTheEnd": "beyond_the_end_is_gone",
    "KeepsReferences": "records_are_copied_in",
    "HandsOutTheSame": "records_are_copied_out",
    "NumbersTheCallersRecords": "append_leaves_the_callers_records_alone",
    "TakesNaN": "values_that_are_refused",
    "TurnsTuplesIntoLists": "values_that_are_refused",
    "ReplacesSurrogates": "values_that_are_refused",
    "TurnsKeysIntoText": "values_that_are_refused",
    "WritesBytesAsText": "values_that_are_refused",
    "DropsNUL": "values_come_back_the_same text_of_every_kind_is_kept",
    "ComposesText": "values_come_back_the_same text_of_every_kind_is_kept",
    "SortsKeys": "values_come_back_the_same unknown_kinds_and_keys_are_kept",
    "RoundsNumbers": "values_come_back_the_same",
    "DropsUnknownKeys": "unknown_kinds_and_keys_are_kept",
    "RefusesUnknownKinds": "unknown_kinds_and_keys_are_kept",
    "TakesAnySize": "a_record_beyond_the_limit_is_refused",
    "TakesAnyDict": "what_is_no_record_is_refused",
    "SaysContent": "nothing_said_holds_content",
    "ShowsItself": "nothing_said_holds_content",
    "FoldsCase": "distinct_ids_are_distinct_logs",
    "CutsIds": "distinct_ids_are_distinct_logs",
    "ComparesIdsAsNumbers": "distinct_ids_are_distinct_logs",
    "FollowsPaths": "bad_ids_are_refused_everywhere",
    "ChecksIdsWhenWriting": "bad_ids_are_refused_everywhere",
    "DeletesTheNameOnly": "delete_leaves_nothing",
    "CountsOnAfterADelete": "delete_leaves_nothing",
    "SaysItDeleted": "delete_says_whether_there_was_one",
    "IgnoresIncarnations": "old_position_conflicts_after_making_anew wait_tells_incarnations_apart",
    "MakesIncarnationsOfIds": "old_position_conflicts_after_making_anew",
    "ReadsOldPositions": "old_position_is_gone_after_making_anew",
    "ListsEmptyOnes": "conversations_lists_what_holds_records",
    "ListsInOrderOfMaking": "conversations_lists_what_holds_records",
    "NeverWakes": "wait_wakes_for_an_append wait_wakes_for_a_delete",
    "WaitsForNothing": "wait_times_out wait_wakes_for_an_append",
    "AlwaysSaysChanged": "wait_times_out",
    "WakesForAnybody": "wait_wakes_for_an_append",
    "WakesOne": "wait_wakes_everyone",
    "WaitsForMore": "wait_wakes_for_a_delete wait_says_at_once_what_has_happened",
    "GluesTornTails": "a_torn_tail_costs_nothing_else",
    "StopsAtTornTails": "a_torn_tail_costs_nothing_else",
    "SplitsAtEveryLineEnd": "values_come_back_the_same",
    "WritesTheLastWithTheNext": "reopened_store_holds_all",
    "RemembersWhatItRead": "reopened_store_holds_all",
    "LocksNobodyOut": "threads_lose_nothing",
    "MakesTheFolderOnce": "threads_are_the_first_users",
    "WritesRecordByRecord": "killed_writer_leaves_whole_batches",
    "SealsEachAlone": "bytes_are_sealed_lines",
    "ReusesSalts": "bytes_are_sealed_lines old_position_conflicts_after_making_anew",
    "TrustsEveryByte": "no_altered_byte_is_handed_out an_unfinished_batch_is_void",
    "AdoptsOverAnother": "a_copy_replaces_nothing",
    "ErasesFromSight": "erased_content_is_gone",
    "LeavesAttachments": "erasing_takes_its_attachments deleting_takes_its_attachments",
    "HasEmptyAttachments": "missing_attachments_are_named",
    "StaysLockedInAFork": "both_sides_of_a_fork_go_on",
}

RANDOM_STEPS = "test_random_steps_agree_with_a_dumb_model"
HEAVY = {
    *("test_a_big_record_is_kept", "test_a_record_beyond_the_limit_is_refused"),
    RANDOM_STEPS,
}
"""Checks that take long, and are done for the faults that they are about."""

WITH_PROCESSES = {"WritesRecordByRecord"}
"""Faults that take another process to be seen. The others are looked for without, to be quick."""


def suite_of(fault: str) -> type[StoreSuite]:
    """Return the suite of a store that has a fault: that of the store without it, and impatient."""
    store = getattr(broken_stores, fault)
    bases = {SimpleStore: SimpleSuite, LinesStore: LinesSuite, MemoryStore: MemorySuite}
    base: Any = next(suite for kind, suite in bases.items() if issubclass(store, kind))
    hooks: dict[str, Any] = {"open_store": staticmethod(partial(places.open_broken, fault))}
    if hasattr(store, "bytes_kept"):
        hooks["read_bytes"] = lambda self, store, conversation: store.bytes_kept(conversation)
    if fault not in WITH_PROCESSES:
        hooks |= {"patience_s": 0.7, "lacks": {**base.lacks, "processes": "to be quick"}}
    return type(fault, (base,), hooks)


@pytest.mark.parametrize("fault", FOUND_BY)
def test_fault_is_found(fault: str) -> None:
    """A store with one fault fails the suite, among others at the checks that are about it."""
    expected = {f"test_{name}" for name in FOUND_BY[fault].split()}
    suite = suite_of(fault)

    only = expected if fault in WITH_PROCESSES else set(checks(suite)) - HEAVY | expected
    outcomes = run(suite, only=only)

    assert expected <= {one.check for one in outcomes if one.what == "failed"}


@pytest.mark.parametrize(
    "fault",
    [
        *("IgnoresExpect", "ExpectsAtLeast", "ConflictsTheWrongWayRound", "AppendsAfterAConflict"),
        *("KeepsWhatCameBeforeABadRecord", "ReversesBatches", "CountsFromZero", "RoundsNumbers"),
        *("ReadsNothingBeyondTheEnd", "TakesNaN", "FoldsCase", "CountsOnAfterADelete"),
        *("MakesIncarnationsOfIds", "AlwaysSaysChanged", "GluesTornTails"),
        "WritesTheLastWithTheNext",
    ],
)
def test_fault_is_found_by_random_steps(fault: str) -> None:
    """What one caller can see of a fault is found by random steps, too."""
    suite = suite_of(fault)
    suite.effort = 4.0  # They end at the first that fails; this leaves nothing to chance.

    assert [one.what for one in run(suite, only=[RANDOM_STEPS])] == ["failed"]


def test_every_fault_is_looked_for() -> None:
    """Each store in broken_stores is in the table."""
    there = {
        name
        for name, value in vars(broken_stores).items()
        if inspect.isclass(value) and value.__module__ == broken_stores.__name__
    }

    assert {name for name in there if not name.startswith("_")} == set(FOUND_BY)
