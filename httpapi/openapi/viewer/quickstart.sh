# export BASE_URL=… API_KEY=… WEBHOOK_URL=https://… WEBHOOK_SECRET=…   # a secret has 32 to 256 characters
# sh quickstart.sh   with the key of a sandbox (qa_test_…): submits a test, has a robot play it, prints the report
set -eu

# What the service says of a refusal (error, hint) is printed, too.
call() {
	curl -sS --fail-with-body -H "Authorization: Bearer $API_KEY" -H "Idempotency-Key: $(date +%s)-$$" "$@"
}

# sh quickstart.sh submit: the project gets the webhook, the answer has the jobId
submit() {
	call "$BASE_URL/v1/hosted/test" -d "{\"url\": \"https://example.com/\", \"feature\": \"sign in\",
		\"webhookUrl\": \"$WEBHOOK_URL\", \"webhookSecret\": \"$WEBHOOK_SECRET\"}"
}

# sh quickstart.sh play JOBID: in a sandbox; every item passes
play() {
	call "$BASE_URL/v1/sandbox/jobs/$1/play" -d '{"summary": "Works."}'
}

# sh quickstart.sh verify FILE ID TIMESTAMP SIGNATURES: the raw body, as it came, and its headers webhook-id,
# webhook-timestamp and webhook-signature. One of the signatures has to be right: there are two while a secret is rotated.
verify() {
	case $3 in "" | *[!0-9]*) echo "no time" >&2; return 1 ;; esac
	age=$(($(date +%s) - $3))
	[ "$age" -lt 300 ] && [ "$age" -gt -300 ] || { echo "too old" >&2; return 1; }
	case $WEBHOOK_SECRET in
	whsec_*) key=$(printf %s "${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n') ;;
	*) key=$(printf %s "$WEBHOOK_SECRET" | od -An -v -tx1 | tr -d ' \n') ;;
	esac
	want=v1,$({ printf '%s.%s.' "$2" "$3"; cat "$1"; } | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
	case " $4 " in *" $want "*) ;; *) echo "not from the service" >&2; return 1 ;; esac
}

# sh quickstart.sh report JOBID: 404 until the job is completed; ?format=md, junit and ctrf are there, too
report() {
	call "$BASE_URL/v1/jobs/$1/report"
}

all() {
	answer=$(submit) || { echo "$answer" >&2; return 1; }
	job=$(echo "$answer" | sed 's/.*"jobId":"\([^"]*\)".*/\1/')
	echo "submitted $job"
	play "$job"; echo
	report "$job"; echo
}

"${@:-all}"
