# export BASE_URL=… API_KEY=… WEBHOOK_URL=https://… WEBHOOK_SECRET=…   # a secret has 32 to 256 characters
set -eu

# sh quickstart.sh submit: the project gets the webhook, the answer has the jobId
submit() {
	curl -fsS "$BASE_URL/v1/hosted/test" -H "Authorization: Bearer $API_KEY" -H "Idempotency-Key: $(date +%s)-$$" \
		-d "{\"url\": \"https://example.com/\", \"feature\": \"sign in\",
		     \"webhookUrl\": \"$WEBHOOK_URL\", \"webhookSecret\": \"$WEBHOOK_SECRET\"}"
}

# sh quickstart.sh verify FILE SIGNATURE: the raw body, as it came, and its X-Service-Signature
verify() {
	want=$(openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -r <"$1" | cut -d ' ' -f 1)
	[ "$want" = "$2" ] || { echo "not from the service" >&2; return 1; }
}

# sh quickstart.sh report JOBID: 404 until the job is completed; ?format=md, junit and ctrf are there, too
report() {
	curl -fsS "$BASE_URL/v1/jobs/$1/report" -H "Authorization: Bearer $API_KEY"
}

"$@"
