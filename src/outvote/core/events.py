"""What is told to a participant, checked: arms, rewards and tickets. Whatever is refused here changes nothing."""

from __future__ import annotations

from outvote.core.batches import Batch, BatchBook
from outvote.core.errors import BatchNotClosable, InvalidReward, NoOutstandingDecision, UnknownArm, UnknownTicket


def is_index(value: object, limit: int) -> bool:
    """A whole number from 0 to below the limit; neither a float nor a bool is one, though it may equal one."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit


def check_arm(arm: object, arms: int) -> None:
    """An index into the task's arms."""
    if not is_index(arm, arms):
        raise UnknownArm.of(arm, arms)


def check_reward(reward: object) -> None:
    """A number from 0 to 1."""
    try:
        if 0.0 <= reward <= 1.0:  # type: ignore[operator]  # whatever cannot be compared is refused below
            return
    except TypeError:
        pass
    raise invalid_reward(reward)


def find_batch(book: BatchBook, arm: int, ticket: int | None, *, windowed: bool) -> Batch | None:
    """The batch of a reward that named none, or none that is open; None where it has closed."""
    if ticket is None:
        batch = next((batch for batch in book.of(arm) if batch.waiting), None)
        if batch is None:
            raise nothing_waits(arm, ticket)
        return batch
    if not book.issued(ticket):
        raise unknown_ticket(book, ticket)
    named = book.by_ticket.get(ticket)
    if named is not None:
        raise UnknownTicket(f"ticket {ticket} belongs to arm {named.arm}: name the arm that decide() returned")
    if not windowed:  # the batch is gone because all its decisions were rewarded
        raise nothing_waits(arm, ticket)
    return None


def take_closable(book: BatchBook, ticket: int, *, windowed: bool) -> Batch | None:
    """Take a full batch out of the book, its window having passed; None if it was closed before, or discarded."""
    if not windowed:
        raise BatchNotClosable(f"got ticket {ticket!r}, but the task has no reward_window: nothing is ever closed")
    if not book.issued(ticket):
        raise unknown_ticket(book, ticket)
    batch = book.by_ticket.get(ticket)
    if batch is not None:
        if batch.left:
            raise BatchNotClosable(f"the batch of ticket {ticket} is still open: close it after its last decision")
        del book.by_ticket[ticket]
    return batch


def invalid_reward(reward: object) -> InvalidReward:
    return InvalidReward(f"a reward must be a number from 0 to 1, got {reward!r}")


def nothing_waits(arm: int, ticket: int | None) -> NoOutstandingDecision:
    under = "" if ticket is None else f" under ticket {ticket}"
    return NoOutstandingDecision(f"no decision of arm {arm} waits for a reward{under}: reward each decision once")


def unknown_ticket(book: BatchBook, ticket: object) -> UnknownTicket:
    return UnknownTicket(f"unknown ticket: got {ticket!r}, this player has issued 0 to {book.next_ticket - 1}")
