package service

import (
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

func TestTheSettingsInForceTellNoSecret(t *testing.T) {
	t.Parallel()
	cfg, err := ParseConfig([]string{
		"HUMANQA_DATABASE_URL=postgres://humanqa:hunter2@db.example:5432/humanqa?sslmode=require&password=hunter3", "HUMANQA_AI=openai",
		"HUMANQA_AI_KEY=sk-hunter4", "HUMANQA_AI_MODEL=small", "HUMANQA_EVENTSTORE_URL=esdb://admin:hunter5@log.example:2113?tls=false",
		"HUMANQA_EVIDENCE_URL=s3://pictures?region=hunter6", "HUMANQA_RATE_LIMIT=90",
		"HUMANQA_SMTP_URL=smtps://qa:hunter7@mx.example", "HUMANQA_SMTP_FROM=qa@qa.example",
	})
	must.NoError(t, err)
	shown := map[string]string{}
	for _, s := range cfg.inForce() {
		if strings.Contains(s.Value, "hunter") {
			t.Errorf("%s is shown as %q", s.Name, s.Value)
		}
		shown[s.Name] = s.Value
	}
	for name, want := range map[string]string{
		"HUMANQA_DATABASE_URL": "postgres://db.example:5432/humanqa …", "HUMANQA_AI_KEY": "set, and never shown", "HUMANQA_AI_MODEL": "small",
		"HUMANQA_EVENTSTORE_URL": "esdb://log.example:2113 …", "HUMANQA_EVIDENCE_URL": "s3://pictures …", "HUMANQA_RATE_LIMIT": "90",
		"HUMANQA_ADDR": "127.0.0.1:8080", "HUMANQA_SMTP_URL": "smtps://mx.example …",
	} {
		if shown[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, shown[name], want)
		}
	}
	if len(shown) != len(Settings()) {
		t.Errorf("%d of %d settings are shown", len(shown), len(Settings()))
	}
}
