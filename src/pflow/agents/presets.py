"""Coding agents that people have on their machines: how each is called without a person in front of it.

A preset is an agent of its own name, and a ``backend`` of agents with instructions of their own.
"""

from __future__ import annotations

import shutil

import msgspec

from pflow.errors import NodeError

# Of our environment, what any of them may need beside what every command gets.
COMMON = ("USER", "SHELL", "TERM", "XDG_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_")


class Preset(msgspec.Struct, frozen=True):
    """One program, its flags, and what to do when it is not there."""

    name: str  # also the program's
    title: str
    flags: tuple[str, ...]  # no questions, and what it does as JSON, as it happens where the program can
    install: str
    login: str
    variables: tuple[str, ...]  # beginnings of the names of variables that are passed on
    subcommand: tuple[str, ...] = ()
    last: tuple[str, ...] = ()  # what stands behind every flag
    system_flag: str = ""  # takes the instructions; without one they stand before the prompt
    tools_flag: str = ""  # takes the tools that are allowed


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "claude",
            "Claude Code",
            ("-p", "--output-format", "stream-json", "--verbose"),
            "npm install -g @anthropic-ai/claude-code",
            "start claude once and log in, or set ANTHROPIC_API_KEY",
            ("ANTHROPIC_", "CLAUDE_", "NODE_EXTRA_CA_CERTS"),
            system_flag="--append-system-prompt",
            tools_flag="--allowedTools",
        ),
        Preset(
            "codex",
            "Codex CLI",
            ("--json", "--color", "never", "--skip-git-repo-check"),
            "npm install -g @openai/codex",
            "codex login, or set CODEX_API_KEY",
            ("CODEX_", "OPENAI_", "AZURE_OPENAI_"),
            subcommand=("exec",),
            last=("-",),
        ),
        Preset(
            "gemini",
            "Gemini CLI",
            ("--output-format", "stream-json"),
            "npm install -g @google/gemini-cli",
            "start gemini once and log in, or set GEMINI_API_KEY",
            ("GEMINI_", "GOOGLE_", "NODE_EXTRA_CA_CERTS"),
            tools_flag="--allowed-tools",
        ),
        Preset(
            "amplifier",
            "Amplifier",
            ("--mode", "single", "--output-format", "json-trace"),
            "uv tool install git+https://github.com/microsoft/amplifier",
            "amplifier init",
            ("AMPLIFIER_", "ANTHROPIC_", "OPENAI_", "AZURE_OPENAI_", "GOOGLE_", "GEMINI_", "OLLAMA_"),
            subcommand=("run",),
        ),
    )
}


def installed() -> list[str]:
    """The presets whose programs are on this machine."""
    return [name for name in PRESETS if shutil.which(name) is not None]


def absent(agent: str, preset: Preset, program: str) -> NodeError:
    """What is said when the program of an agent is not there."""
    others = [name for name in installed() if name != preset.name]
    known = f"; on this machine: {', '.join(others)}" if others else ""
    return NodeError(
        f'agent "{agent}" is {preset.title}, and its program "{program}" is not on the PATH',
        f"{preset.install}, then {preset.login}{known}",
        "agent",
        {"reason": "absent", "agent": agent, "program": program, "install": preset.install, "installed": others},
    )
