#!/usr/bin/env bash
# The step of the action: its inputs come by the environment (action.yml).
set -euo pipefail
if [[ $INPUT_REFRESH == true ]]; then
	exec "$HQA_BINARY" github --refresh
fi
args=(github "--url=$INPUT_URL" "--feature=$INPUT_FEATURE" "--files=$INPUT_FILES" "--changed=$INPUT_CHANGED"
	"--fail-on=$INPUT_FAIL_ON" "--max-credits=$INPUT_MAX_CREDITS" "--timeout=$INPUT_TIMEOUT")
[[ $INPUT_WAIT == true ]] || args+=(--no-wait)
[[ $INPUT_WAIT != detached ]] || args+=("--commit-status=$INPUT_STATUS_NAME")
[[ $INPUT_COMMENT == true ]] || args+=(--no-comment)
exec "$HQA_BINARY" "${args[@]}"
