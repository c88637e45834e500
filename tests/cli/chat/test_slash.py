"""Commands of the chat, each by what it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import everthread
from everthread import Invalid, NotFound
from everthread.cli.chat import slash_commands as slash
from everthread.cli.chat.screen import Details
from everthread.cli.chat.session import ChatSession
from everthread.settings import Settings


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[slash.ChatConsole]:
    """A chat that nobody said anything in yet."""
    settings = Settings.load(model="scripted:echo", skills_dir=tmp_path / "skills")
    async with everthread.open("memory://", settings=settings, worker=False) as et:
        session = ChatSession(et=et, agent=everthread.agent(et, settings=settings), settings=settings)
        yield slash.ChatConsole(session=session, details=Details())


async def say(console: slash.ChatConsole, text: str) -> None:
    await (await console.session.ask(text)).wait()


async def test_every_command_works_before_anything_is_said(console: slash.ChatConsole) -> None:
    for name in slash.COMMANDS:
        if name not in ("/search", "/exit"):
            assert await slash.run(console, name), name
    assert console.session.conversation is None
    assert [one async for one in _conversations(console)] == []


async def _conversations(console: slash.ChatConsole) -> AsyncIterator[str]:
    for one in (await console.session.et.conversations.list()).items:
        yield one.id


async def test_current_tells_session_messages_workspace_and_model(console: slash.ChatConsole) -> None:
    await say(console, "hello")
    conversation = await console.session.ensure_conversation()
    told = await slash.run(console, "/current")
    assert f"session    {conversation.id}  hello" in told
    assert "messages   2/1000 (window), 2 in the log" in told
    assert str(console.session.et.workspaces.root) in told
    assert "scripted:echo" in told


async def test_context_and_compact_and_search_look_at_what_was_said(console: slash.ChatConsole) -> None:
    for at in range(8):
        await say(console, f"passport number {at} " + "and many more words about the trip to Kyoto in spring " * 30)
    assert "window" in await slash.run(console, "/context")
    assert "became" in await slash.run(console, "/compact")
    assert "passport" in await slash.run(console, "/search passport")
    assert await slash.run(console, "/search aardvark") == "Nothing found."
    with pytest.raises(Invalid):
        await slash.run(console, "/search")


async def test_resume_goes_by_number_and_by_id(console: slash.ChatConsole) -> None:
    await say(console, "the first one")
    first = await console.session.ensure_conversation()
    console.session.conversation = None
    await say(console, "the second one")
    listed = await slash.run(console, "/resume")
    assert "  1  " in listed
    assert "the second one" in listed.splitlines()[0]
    await slash.run(console, "/resume 2")
    assert console.session.conversation is not None
    assert console.session.conversation.id == first.id
    assert "the first one" in await slash.run(console, f"/resume {first.id}")
    with pytest.raises(NotFound):
        await slash.run(console, "/resume nobody")


async def test_resume_takes_the_beginning_of_an_id(console: slash.ChatConsole) -> None:
    for id, text in (("demo-one", "the first one"), ("demo-two", "the second one")):
        console.session.conversation = await console.session.et.conversations.create(id=id)
        await say(console, text)
    assert "the first one" in await slash.run(console, "/resume demo-o")
    with pytest.raises(Invalid, match=r"begins 2 ids: demo-(one|two), demo-(one|two)"):
        await slash.run(console, "/resume demo")


async def test_outside_of_the_chat_an_unknown_conversation_is_told_with_a_command_of_the_shell(
    console: slash.ChatConsole,
) -> None:
    with pytest.raises(NotFound, match="`everthread ls` lists them"):
        await console.session.resume("nobody")


async def test_resume_takes_a_number_also_before_anything_was_listed(console: slash.ChatConsole) -> None:
    await say(console, "the only one")
    only = await console.session.ensure_conversation()
    console.session.conversation, console.session.known = None, []
    await slash.run(console, "/resume 1")
    assert console.session.conversation is not None
    assert console.session.conversation.id == only.id
    with pytest.raises(NotFound, match="/resume lists"):
        await slash.run(console, "/resume 7")


async def test_fork_goes_on_from_an_earlier_message(console: slash.ChatConsole) -> None:
    await say(console, "one")
    await say(console, "two")
    assert "two" in await slash.run(console, "/fork")
    await slash.run(console, "/fork 2")
    await say(console, "other two")
    conversation = await console.session.ensure_conversation()
    assert [one.text async for one in conversation.messages()] == ["one", "one", "other two", "other two"]
    with pytest.raises(Invalid):
        await slash.run(console, "/fork here")


async def test_a_message_that_only_calls_tools_is_listed_by_what_it_calls(console: slash.ChatConsole) -> None:
    conversation = await console.session.ensure_conversation()
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    await conversation.append([{"role": "assistant", "content": "", "tool_calls": [call]}])
    assert "assistant: (calls add)" in await slash.run(console, "/fork")


async def test_the_gauge_tells_how_it_counts_and_when_it_sums_up(console: slash.ChatConsole) -> None:
    await say(console, "hello")
    assert "exact, for scripted:echo); compaction begins at 80%" in await slash.run(console, "/context")


async def test_without_files_upload_tells_how_to_hand_one_in(console: slash.ChatConsole) -> None:
    assert "/upload FILE adds one" in await slash.run(console, "/upload")


async def test_a_model_that_cannot_be_had_leaves_the_one_there_is(console: slash.ChatConsole) -> None:
    with pytest.raises(everthread.EverthreadError):
        await slash.run(console, "/model nonsense")
    assert "scripted:echo" in await slash.run(console, "/model")


async def test_skills_are_listed_chosen_and_left(console: slash.ChatConsole, tmp_path: Path) -> None:
    assert "@data-report" in await slash.run(console, "/skills")
    await slash.run(console, "/skills @Data-Report")
    assert console.session.skill == "data-report"
    await slash.run(console, "/skills none")
    assert console.session.skill is None
    with pytest.raises(Invalid):
        await slash.run(console, "/skills fly")


async def test_an_upload_is_tracked_and_a_wrong_one_is_told(console: slash.ChatConsole, tmp_path: Path) -> None:
    (tmp_path / "budget.csv").write_text("a,b\n1,2\n")
    (tmp_path / "photo.png").write_bytes(b"%PDF-1.7")
    assert "uploads/budget.csv  text/csv  8 B" in await slash.run(console, f"/upload {tmp_path / 'budget.csv'}")
    assert "budget.csv" in await slash.run(console, "/upload")
    await say(console, "what is in it?")
    await say(console, "and now?")
    texts = [one.text async for one in (await console.session.ensure_conversation()).messages() if one.role == "user"]
    assert texts == ["[uploaded: uploads/budget.csv, text/csv, 8 bytes]\nwhat is in it?", "and now?"]
    for wrong, why in ((tmp_path / "photo.png", "says image/png"), (tmp_path / "gone", "cannot be read")):
        with pytest.raises(Invalid, match=why):
            await slash.run(console, f"/upload {wrong}")


async def test_clean_tells_what_it_would_do_and_does_it(console: slash.ChatConsole) -> None:
    await say(console, "hello")
    assert "would be removed" in await slash.run(console, "/clean --dry-run")
    assert "used recently" in await slash.run(console, "/clean")


async def test_an_export_is_a_new_markdown_file(console: slash.ChatConsole, tmp_path: Path) -> None:
    await say(console, "hello **there**")
    await slash.run(console, f"/export {tmp_path / 'session.md'}")
    assert (tmp_path / "session.md").read_text().count("hello **there**") == 3  # the title, the question, the answer
    with pytest.raises(Invalid, match="already exists"):
        await slash.run(console, f"/export {tmp_path / 'session.md'}")
    with pytest.raises(Invalid, match="cannot be written"):
        await slash.run(console, f"/export {tmp_path / 'no' / 'folder.md'}")


async def test_what_is_no_command_is_told(console: slash.ChatConsole) -> None:
    with pytest.raises(Invalid, match="unknown command /fly; /help"):
        await slash.run(console, "/fly away")
    with pytest.raises(Invalid, match="did you mean /search"):
        await slash.run(console, "/serach passport")
    await slash.run(console, "/exit")
    assert console.is_over
