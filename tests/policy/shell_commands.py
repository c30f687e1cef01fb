"""Random shell commands from a grammar: plain ones, and ones that hide `make` behind something."""

from __future__ import annotations

from random import Random

_WORDS = (
    "-n 3", "--oneline", "HEAD~3", "HEAD^", "main..dev", "-- a/b.py", "--format=%H", "a:b", "-p", "x@y", "a,b", "-x",
    "'a b'", "'a; make'", "'#'", "'$x'", "'`make`'", "\"a b\"", "\"a; make\"", "\"#\"", "\"\\\"\"", "\"\\$(make)\"",
    "\"\\\\\"", "\\;", "\\&", "\\#", "\\|", "\\(", "\\ ", "\\'", "\\\"", "\\\\", "''", "\"\"", "'é'", "\"é\"",
    "'a\nb'", "'\\'", "a'b'\"c\"", "'!'",
)  # fmt: skip
_STARTS = ("git log", "git status", "git log", "git status", "git  log", "git\tlog", "git 'log'", "g'i't log")
_JOINTS = ("; ", " && ", " || ", " | ", "\n", " & ", " &&\n", " |\n", ";", "&&", "|", "\n\n")
_ENDS = ("", "", "", "", " 2>&1", " >/dev/null", " 2>/dev/null", ";", "\n", " &", " </dev/null", " >&2")
_HIDDEN = (
    "make", "; make", "&& make", "| make", "& make", "\nmake", "$(make)", "`make`", "${x:-$(make)}", "\"$(make)\"",
    "\"`make`\"", "<(make)", "> out", ">out make", "&> out make", "2> out", "< /dev/null make", "(make)", "{ make; }",
    "; { make; }", "; (make)", "if make; then git log; fi", "for i in a; do make; done", "; case a in a) make;; esac",
    "; case a in (b|a) make;; esac", "; while make; do break; done", "; eval make", "; eval 'make a'", "; exec make",
    "; x=make; $x", "; $x make", "; m=mak; ${m}e", "; ma''ke", "; m\\ake", "; \"make\"", "; $'make'", "; $'\\x6dake'",
    "; trap make EXIT", "; command make", "; builtin eval make", "; ! make", "; time make", "; coproc make",
    "; {fd}>out make", "; 3>out make", "; A=1 make", "; A=$(make)", "; a=($(make))", "; [[ -n $(make) ]]",
    "; (( $(make) ))", "; f() { make; }; f", "; git() { make; }; git", "; function f { make; }; f",
    "alias git=make\ngit log", "; . /dev/stdin <<< make", "<<E\n$(make)\nE\n", "<<E\n`make`\nE\n", "<<E; make\nx\nE\n",
    "<<'E'\n$(make)\nE\n", "<<E\na \\\nE\n'\nE\nmake #'", "<<-E\n\tx\n\tE\nmake\n", "<<E\nE\nmake\n", "; e'v'al make",
    "; [ -n a ] && make", "$((1+$(make)))", "; ((1+$(make)))", "; ( (make) )", "; ((make))", "; {ma,}ke", "; mak?",
    "; /???/ma*", "; echo make | sh", "; set -- make; \"$@\"", "; set -- make; $1", "; read x <<< make; $x",
    "; env -S make", "; sudo make", "; echo a | xargs make", "; hash -p /x make", "; export A=$(make)",
)  # fmt: skip
_FRAGMENTS = (
    "#", " #", "\\;#", "\\&#", "\\|#", "\\(#", "${x:- #}", "${x/ #/}", "\"${x:-\"'\"}\"", "${x:-'}", "${x:-\"'\"}",
    "\\\\\n", "\\\n", " \\\n", "\\\\\\\n", "'", "\"", "\\", "$'a\\'b'", "$'", "$\"", "$", "`", "(", ")", "{", "}", "[[ ",
    " ]]", ";", "&", "|", "<", ">", "!", "~", "^", "=", "*", "?", "[", "]", "$[", "$((", "))", "((", "<<E", "<<'E'",
    "\nE\n", "\r", "\u00a0", "\u3000", "\x0b", "\x01", "\t", "\n", " ", ";;", "|&", "&|", "&!", "{a,b}", "a#b", "#'", "#\"",
    "'\\''", "\"'\"", "'\"'", "\"\\\"", "<<<", "@(", "esac", "then ", "do ", "in ", "fi", "$x", "\"$x\"", "${x}", "2", "9",
)  # fmt: skip


def random_command(random: Random) -> str:
    """Return a command; about half of them are plain."""
    text = _plain(random)
    if random.random() < 0.4:
        return text
    for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
        text = _changed(random, text)
    return text


def _plain(random: Random) -> str:
    commands = []
    for _ in range(random.choice((1, 1, 2, 3))):
        words = [random.choice(_WORDS) for _ in range(random.choice((0, 1, 1, 2, 4)))]
        commands.append(" ".join([random.choice(_STARTS), *words]) + random.choice(_ENDS))
    text = commands[0]
    for each in commands[1:]:
        text += random.choice(_JOINTS) + each
    return text


def _changed(random: Random, text: str) -> str:
    at = _place(random, text)
    kind = random.random()
    if kind < 0.35:
        return (
            text[:at]
            + random.choice(("", " "))
            + random.choice(_HIDDEN)
            + random.choice(("", " "))
            + text[at:]
        )
    if kind < 0.75:
        return text[:at] + random.choice(_FRAGMENTS) + text[at:]
    if kind < 0.85:
        return text[:at] + text[at + random.randint(1, 3) :]
    end = _place(random, text)
    if kind < 0.95:
        return text[:at] + _nested(random, text[at:end]) + text[max(at, end) :]
    return text[:at] + text[min(at, end) : max(at, end)] + text[at:]


def _place(random: Random, text: str) -> int:
    """Return a random position in ``text``, often between words."""
    places = [at for at, each in enumerate(text) if each in " \n;&|'\"\\"] or [0]
    return random.choice((random.choice(places), random.randint(0, len(text)), len(text)))


def _nested(random: Random, text: str) -> str:
    before, behind = random.choice(
        (("$(", ")"), ("`", "`"), ('"', '"'), ("'", "'"), ("(", ")"), ("{ ", "; }"), ("eval '", "'"), ("${x:-", "}"),
         ("<<E\n", "\nE\n"), ("\"$(", ")\""), ("$((", "))"), ("case a in a) ", ";; esac"), ("if ", "; then make; fi"))
    )  # fmt: skip
    return before + text + behind
