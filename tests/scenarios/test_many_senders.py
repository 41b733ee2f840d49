"""T1: many send to one conversation at once, and it becomes one line. `tools/soak sends` is the full size."""

from tests.scenarios import crowd


def test_processes_make_one_line(tmp_path):
    """Processes that block and processes that await make one line of done turns, every input once."""
    crowd.processes(tmp_path / "s", count=4, each=8)


def test_threads_and_tasks_of_several_processes_make_one_line(tmp_path):
    """So do several threads or tasks in each of several processes."""
    crowd.processes(tmp_path / "s", count=2, each=4, workers=4)


def test_processes_send_to_one_conversation_in_a_file_of_sqlite(tmp_path):
    """The same where the conversation is in a SQLite database."""
    crowd.processes(f"sqlite:///{tmp_path}/ledger.db", count=3, each=4)


def test_threads_and_tasks_of_one_process_make_one_line(store):
    """So do threads and tasks that share one process and one store."""
    crowd.mixed(store, workers=4, each=5)

    crowd.check_one_line(store, 40)
