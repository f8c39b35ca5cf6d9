"""The player of stories about reads from followers: the commands of `LogPlayer`, and reads that carry a version."""

from __future__ import annotations

from faultline.story.log_player import WIDGETS, LogPlayer
from faultline.story.log_words import stock_words
from faultline.systems_under_test.reference.follower_reads.messages import FollowerRead
from faultline.testing.transcripts import CommandError

__all__ = ["ReadPlayer"]


class ReadPlayer(LogPlayer):
    """One scene on `follower-reads`."""

    def do_read(self, words: list[str]) -> None:
        """read CLIENT NODE [after NUMBER]

        Count the widgets at NODE; pass the version that the answer to the client's request NUMBER gave. Print what NODE
        answers at once.
        """
        name, node, *rest = words if len(words) > 2 else self.exactly(2, words, "read")
        client = self.client(name)
        version = 0
        if rest:
            _, number = self.exactly(2, rest, "read")
            answer = client.answer_to(int(number))
            if answer is None:
                raise CommandError(f"{name} has no answer to #{number}, and so no version")
            version = answer.version
        client.number += 1
        self.cluster.hand(name, self.running(node), FollowerRead(client.number, WIDGETS, version))
        self.told(name)

    def do_answers(self, words: list[str]) -> None:
        """answers CLIENT

        Print what CLIENT was answered to its latest request, if anything.
        """
        (name,) = self.exactly(1, words, "answers")
        client = self.client(name)
        answer = client.answer_to(client.number)
        if answer is None:
            self.lines.append(f"{name} has no answer to #{client.number} yet")
        else:
            words_of = answer.error or stock_words(answer.value)
            self.lines.append(f"#{answer.request_number} {words_of}")
