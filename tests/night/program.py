#!/usr/bin/python3 -IS
"""Claude Code, Codex and Gemini CLI as far as a night needs them: by its name it is one of them, and speaks its stream.

It asks the model of its provider where its environment says, does what the model says in a shell, and tells of it.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

NAME = os.path.basename(sys.argv[0])


def ask(prompt, turns):
    """What the model says: (status, text)."""
    said = [prompt, *turns]
    if NAME == "claude":
        url, key = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", {"x-api-key": os.environ["ANTHROPIC_API_KEY"]}
        messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
        body = {"model": "claude-night", "max_tokens": 1000, "messages": messages}
    elif NAME == "codex":
        key = {"authorization": "Bearer " + (os.environ.get("OPENAI_API_KEY") or os.environ["CODEX_API_KEY"])}
        url = os.environ["OPENAI_BASE_URL"] + "/responses"
        body = {"model": "gpt-night", "input": [{"role": "user", "content": text} for text in said]}
    else:
        key = {"x-goog-api-key": os.environ["GEMINI_API_KEY"]}
        url = os.environ["GOOGLE_GEMINI_BASE_URL"] + "/v1beta/models/gemini-night:generateContent"
        body = {"contents": [{"role": "user", "parts": [{"text": text}]} for text in said]}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json", **key})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request) as answer:
            said = json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return None, str(error)
    if NAME == "claude":
        return 200, said["content"][0]["text"]
    return 200, said["output"][0]["content"][0]["text"] if NAME == "codex" else said["candidates"][0]["content"][
        "parts"
    ][0]["text"]


def tell(**message):
    print(json.dumps(message), flush=True)


def begun():
    if NAME == "claude":
        tell(type="system", subtype="init", session_id="1", tools=[], apiKeySource="ANTHROPIC_API_KEY")
    elif NAME == "codex":
        tell(type="thread.started", thread_id="1")
    else:
        tell(type="init", session_id="1", model="auto")


def tool_begun(number, command):
    if NAME == "claude":
        block = {"type": "tool_use", "id": number, "name": "Bash", "input": {"command": command}}
        tell(type="assistant", message={"content": [block]})
    elif NAME == "codex":
        tell(type="item.started", item={"id": number, "type": "command_execution", "command": command})
    else:
        tell(type="tool_use", tool_name="run_shell_command", tool_id=number, parameters={"command": command})


def tool_ended(number, command, code, output):
    if NAME == "claude":
        block = {"type": "tool_result", "tool_use_id": number, "content": output, "is_error": code != 0}
        tell(type="user", message={"content": [block]})
    elif NAME == "codex":
        state = "completed" if code == 0 else "failed"
        tell(
            type="item.completed",
            item={
                "id": number,
                "type": "command_execution",
                "command": command,
                "aggregated_output": output,
                "exit_code": code,
                "status": state,
            },
        )
    else:
        tell(type="tool_result", tool_id=number, status="success" if code == 0 else "error", output=output)


def ended(text, turns):
    if NAME == "claude":
        tell(type="assistant", message={"content": [{"type": "text", "text": text}]})
        tell(
            type="result",
            subtype="success",
            is_error=False,
            num_turns=turns,
            result=text,
            terminal_reason="completed",
            usage={"input_tokens": turns * 1000, "output_tokens": turns * 100},
        )
    elif NAME == "codex":
        tell(type="item.completed", item={"id": "last", "type": "agent_message", "text": text})
        tell(type="turn.completed", usage={"input_tokens": turns * 1000, "output_tokens": turns * 100})
    else:
        tell(type="message", role="assistant", content=text, delta=True)
        tell(type="result", status="success", stats={"input_tokens": turns * 1000, "output_tokens": turns * 100})


def failed(status, text):
    if NAME == "claude":
        said = f"API Error: {status} {text}" if status else "API Error: Unable to connect to API (ECONNREFUSED)"
        tell(
            type="system",
            subtype="api_retry",
            attempt=1,
            error_status=status,
            error="rate_limit" if status == 429 else "unknown",
        )
        tell(
            type="result",
            subtype="success",
            is_error=True,
            result=said,
            terminal_reason="api_error",
            api_error_status=status,
        )
    elif NAME == "codex":
        said = f"unexpected status {status}: {text}" if status else "error sending request for url"
        tell(type="turn.failed", error={"message": said})
    else:
        said = f"Attempt 1 failed with status {status}. {text}" if status else "Attempt 1 failed: fetch failed"
        print(said, file=sys.stderr, flush=True)
        tell(type="result", status="error", error={"type": "ApiError", "message": said})
    sys.exit(1)


def told():
    """The prompt; Claude Code is told more while it works, and reads until nobody tells it anything."""
    if "--input-format=stream-json" not in sys.argv:
        return sys.stdin.read()
    return json.loads(sys.stdin.readline())["message"]["content"][0]["text"]


def main():
    prompt, turns = told(), []
    begun()
    while True:
        status, text = ask(prompt, turns)
        if status != 200:
            failed(status, text[:300])
        if not text.startswith("$ "):
            ended(text, len(turns) // 2 + 1)
            sys.stdin.read()
            return
        command, number = text[2:], f"t{len(turns)}"
        tool_begun(number, command)
        done = subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        tool_ended(number, command, done.returncode, done.stdout + done.stderr)
        turns += [text, f"exit status {done.returncode}\n{done.stdout}{done.stderr}"]


if __name__ == "__main__":
    main()
