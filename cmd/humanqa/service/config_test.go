package service

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/ai"
	"humanqa/internal/guard"
	"humanqa/internal/hosting"
	"humanqa/internal/testing/must"
)

func TestTheEnvironmentHasDefaults(t *testing.T) {
	t.Parallel()
	got, err := ParseConfig([]string{"PATH=/bin", "HUMANQA_BASE_URL=", "HUMANQA_TEST_EVENTSTORE_URL=esdb://x"})
	must.NoError(t, err)
	dir, err := filepath.Abs(".humanqa")
	must.NoError(t, err)
	// docs/settings.md shows plain defaults; these follow from others.
	for what, pair := range map[string][2]any{
		"voice address": {got.VoiceAddr, "127.0.0.1:7882"}, "data directory": {got.DataDir, dir},
		"keyset": {got.MasterKeyFile, filepath.Join(dir, "master-keyset.json")}, "evidence": {got.EvidenceURL, "file://" + filepath.Join(dir, "evidence")},
		"voice": {got.Voice, true}, "roles": {got.Roles, Roles{API: true, Projector: true, Webhooks: true, Policy: true}},
		"level": {got.LogLevel, logrus.InfoLevel}, "base URL": {got.BaseURL, ""},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
		}
	}
	if got.AdminAddrGiven || got.VoiceAddrGiven || len(got.given) != 0 {
		t.Errorf("given: %v", got.given)
	}
}

func TestEverySettingIsTaken(t *testing.T) {
	t.Parallel()
	got, err := ParseConfig([]string{
		"HUMANQA_ADDR=:9090",
		"HUMANQA_BASE_URL=https://qa.example.com/",
		"HUMANQA_TLS_CERT=/srv/cert.pem",
		"HUMANQA_TLS_KEY=/srv/key.pem",
		"HUMANQA_TRUSTED_PROXIES=10.0.0.0/8",
		"HUMANQA_ADMIN_ADDR=off",
		"HUMANQA_VOICE=off",
		"HUMANQA_VOICE_ADDR=:7000",
		"HUMANQA_VOICE_PUBLIC=192.0.2.7, 2001:db8::7",
		"HUMANQA_DATA_DIR=/srv/qa",
		"HUMANQA_DATABASE_URL=postgres://db/qa",
		"HUMANQA_DATABASE_DIRECT_URL=postgres://direct/qa",
		"HUMANQA_DATABASE_CONNECTIONS=30",
		"HUMANQA_EVENTSTORE_URL=esdb://log:2113",
		"HUMANQA_EVENTSTORE_MAX_APPEND=2097152",
		"HUMANQA_MASTER_KEY_FILE=/srv/key.json",
		"HUMANQA_EVIDENCE_URL=s3://evidence?region=eu-central-1",
		"HUMANQA_AI=openai",
		"HUMANQA_AI_BASE_URL=http://models.example.com/v1",
		"HUMANQA_AI_MODEL=small",
		"HUMANQA_AI_KEY=sk-1",
		"HUMANQA_WEBHOOK_ALLOW=10.0.0.0/8, 127.0.0.1",
		"HUMANQA_WEBHOOK_CA_FILE=/srv/ca.pem",
		"HUMANQA_TARGET_ALLOW=staging.internal",
		"HUMANQA_RECORDING_LIMIT=2147483648",
		"HUMANQA_RATE_LIMIT=120",
		"HUMANQA_MAX_CONNECTIONS=500",
		"HUMANQA_CLOSE_EVERY=50",
		"HUMANQA_STOP_DELAY=5",
		"HUMANQA_HOSTED_DOMAINS=apps.example, Other.example",
		"HUMANQA_ROLES=api, policy",
		"HUMANQA_LOG_FORMAT=json",
		"HUMANQA_LOG_LEVEL=debug",
	})
	must.NoError(t, err)
	if len(got.WebhookAllow) != 2 {
		t.Errorf("webhook allow %v, want two networks", got.WebhookAllow)
	}
	if len(got.TrustedProxies) != 1 {
		t.Errorf("trusted proxies %v, want one network", got.TrustedProxies)
	}
	got.WebhookAllow, got.TrustedProxies, got.given = nil, nil, nil
	want, err := ParseConfig(nil) // a new setting keeps its default
	must.NoError(t, err)
	want.given, want.AdminAddr, want.Voice = nil, "", false
	want.Addr = ":9090"
	want.BaseURL = "https://qa.example.com"
	want.TLSCert = "/srv/cert.pem"
	want.TLSKey = "/srv/key.pem"
	want.DataDir = "/srv/qa"
	want.DatabaseURL = "postgres://db/qa"
	want.DatabaseDirectURL = "postgres://direct/qa"
	want.DatabaseConnections = 30
	want.EventStoreURL = "esdb://log:2113"
	want.MasterKeyFile = "/srv/key.json"
	want.EvidenceURL = "s3://evidence?region=eu-central-1"
	want.AI = ai.Config{BaseURL: "http://models.example.com/v1", Model: "small", Key: "sk-1"}
	want.WebhookCAFile = "/srv/ca.pem"
	want.TargetAllow = guard.Targets{Suffixes: []string{"staging.internal"}}
	want.EventStoreMaxAppend = 2 << 20
	want.RecordingLimit = 2 << 30
	want.RateLimit = 120
	want.MaxConnections = 500
	want.CloseEvery = 50
	want.StopDelay = 5 * time.Second
	want.HostedDomains = hosting.Domains{"apps.example", "other.example"}
	want.AdminAddrGiven = true
	want.VoiceAddr = ":7000"
	want.VoiceAddrGiven = true
	want.VoicePublic = []string{"192.0.2.7", "2001:db8::7"}
	want.Roles = Roles{API: true, Policy: true}
	want.LogFormat = "json"
	want.LogLevel = logrus.DebugLevel
	want.VoiceChoice = "off"
	want.AIChoice, want.AIBaseURL, want.AIModel, want.AIKey = "openai", want.AI.BaseURL, want.AI.Model, want.AI.Key
	want.StopDelaySeconds = 5
	want.RoleNames, want.LogLevelName = "api, policy", "debug"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestABadSettingStopsTheStartWithOneClearLine(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"HUMANQA_ADRR=127.0.0.1:1":                        "unknown setting HUMANQA_ADRR",
		"HUMANQA_PORT=tcp://10.0.0.9:8080":                "unknown setting HUMANQA_PORT: Kubernetes adds it",
		"HUMANQA_ADDR=8080":                               `HUMANQA_ADDR: "8080" is no listen address`,
		"HUMANQA_ADDR=127.0.0.1:http":                     `HUMANQA_ADDR: "127.0.0.1:http" is no listen address`,
		"HUMANQA_ADMIN_ADDR=none":                         `HUMANQA_ADMIN_ADDR: "none" is no listen address`,
		"HUMANQA_VOICE=on":                                `HUMANQA_VOICE: "on" is not offered: use embedded or off`,
		"HUMANQA_VOICE_ADDR=7882":                         `HUMANQA_VOICE_ADDR: "7882" is no listen address`,
		"HUMANQA_VOICE_PUBLIC=192.0.2.7,here":             `HUMANQA_VOICE_PUBLIC: "here" is no IP address`,
		"HUMANQA_BASE_URL=qa.example.com":                 "HUMANQA_BASE_URL: is no URL",
		"HUMANQA_BASE_URL=https:":                         "HUMANQA_BASE_URL: is no URL",
		"HUMANQA_BASE_URL=https://a.example/qa":           "HUMANQA_BASE_URL: must have no path",
		"HUMANQA_BASE_URL=https://a.example/?x=1":         "HUMANQA_BASE_URL: must have no path",
		"HUMANQA_DATABASE_URL=mysql://u:secret@db/x":      "HUMANQA_DATABASE_URL: is no URL",
		"HUMANQA_EVENTSTORE_URL=http://log":               "HUMANQA_EVENTSTORE_URL: is no URL",
		"HUMANQA_SMTP_URL=mx.example:587":                 "HUMANQA_SMTP_URL: is no URL that starts with smtp:// or smtps://",
		"HUMANQA_SMTP_URL=smtp://u:secret@mx.example":     "HUMANQA_SMTP_FROM: must be an address such as humanqa <qa@example.com>",
		"HUMANQA_EVENTSTORE_LISTEN=x":                     "HUMANQA_EVENTSTORE_LISTEN: ",
		"HUMANQA_DATABASE_DIRECT_URL=postgres://db/x":     "HUMANQA_DATABASE_DIRECT_URL: stands beside HUMANQA_DATABASE_URL",
		"HUMANQA_DATABASE_CONNECTIONS=9":                  "HUMANQA_DATABASE_CONNECTIONS: 9 is out of range: use 10 to 1000",
		"HUMANQA_DATABASE_CONNECTIONS=1001":               "HUMANQA_DATABASE_CONNECTIONS: 1001 is out of range: use 10 to 1000",
		"HUMANQA_DATABASE_CONNECTIONS=many":               `HUMANQA_DATABASE_CONNECTIONS: "many" is no whole number`,
		"HUMANQA_POSTGRES_LISTEN=x":                       "HUMANQA_POSTGRES_LISTEN: ",
		"HUMANQA_POSTGRES_LISTEN=0.0.0.0:0":               "HUMANQA_POSTGRES_LISTEN: needs a port of its own",
		"HUMANQA_EVENTSTORE_LISTEN_INSECURE=0.0.0.0:2113": "is not a loopback address",
		"HUMANQA_AI=magic":                                `HUMANQA_AI: "magic" is not offered: use rules or openai`,
		"HUMANQA_EVIDENCE_URL=s3://me:secret@evidence":    "HUMANQA_EVIDENCE_URL: is neither s3://",
		"HUMANQA_EVIDENCE_URL=/srv/evidence":              "HUMANQA_EVIDENCE_URL: is neither s3://",
		"HUMANQA_TRUSTED_PROXIES=proxy":                   "HUMANQA_TRUSTED_PROXIES: ",
		"HUMANQA_TLS_CERT=/srv/cert.pem":                  "HUMANQA_TLS_KEY: must be set",
		"HUMANQA_TLS_KEY=/srv/key.pem":                    "HUMANQA_TLS_CERT: must be set",
		"HUMANQA_WEBHOOK_ALLOW=10.0.0.0/99":               "HUMANQA_WEBHOOK_ALLOW: ",
		"HUMANQA_MAX_CONNECTIONS=0":                       "HUMANQA_MAX_CONNECTIONS: ",
		"HUMANQA_TARGET_ALLOW=http://localhost":           `HUMANQA_TARGET_ALLOW: "http://localhost" is neither a network`,
		"HUMANQA_HOSTED_DOMAINS=*.apps.example":           `HUMANQA_HOSTED_DOMAINS: "*.apps.example" is no domain`,
		"HUMANQA_EVENTSTORE_MAX_APPEND=1MB":               `HUMANQA_EVENTSTORE_MAX_APPEND: "1MB" is no whole number that fits`,
		"HUMANQA_RECORDING_LIMIT=9223372036854775808":     `HUMANQA_RECORDING_LIMIT: "9223372036854775808" is no whole number that fits`,
		"HUMANQA_RATE_LIMIT=sixty":                        `HUMANQA_RATE_LIMIT: "sixty" is no whole number that fits`,
		"HUMANQA_EVENTSTORE_LISTEN_INSECURE=2113":         `HUMANQA_EVENTSTORE_LISTEN_INSECURE: "2113" is no listen address`,
		"HUMANQA_CLOSE_EVERY=0":                           "HUMANQA_CLOSE_EVERY: 0 is out of range: use 1 to 1000000",
		"HUMANQA_RECORDING_LIMIT=1":                       "HUMANQA_RECORDING_LIMIT: 1 is out of range",
		"HUMANQA_RATE_LIMIT=0":                            "HUMANQA_RATE_LIMIT: 0 is out of range: use 1 to 1000000000",
		"HUMANQA_STOP_DELAY=31":                           "HUMANQA_STOP_DELAY: 31 is out of range: use 0 to 30",
		"HUMANQA_ROLES=api,janitor":                       `HUMANQA_ROLES: "janitor" is no role`,
		"HUMANQA_LOG_FORMAT=xml":                          `HUMANQA_LOG_FORMAT: "xml" is not offered: use text or json`,
		"HUMANQA_LOG_LEVEL=loud":                          `HUMANQA_LOG_LEVEL: "loud" is no level`,
	} {
		_, err := ParseConfig([]string{setting})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", setting, err, want)
			continue
		}
		if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q is not one line without secrets", setting, err)
		}
	}
}

func TestAnEmbeddedNodeCannotListenForAnotherLog(t *testing.T) {
	t.Parallel()
	_, err := ParseConfig([]string{"HUMANQA_EVENTSTORE_URL=esdb://log", "HUMANQA_EVENTSTORE_LISTEN=127.0.0.1:2113"})
	if err == nil || !strings.Contains(err.Error(), "there is no embedded node to listen") {
		t.Errorf("error %v", err)
	}
}

func TestAModelNeedsItsNameAndKey(t *testing.T) {
	t.Parallel()
	const on, model, key = "HUMANQA_AI=openai", "HUMANQA_AI_MODEL=small", "HUMANQA_AI_KEY=sk-secret"
	for name, c := range map[string]struct {
		environ []string
		want    string // the whole line; empty: it starts
	}{
		"everything, at the vendor's": {[]string{on, model, key}, ""},
		"a base URL":                  {[]string{on, model, key, "HUMANQA_AI_BASE_URL=http://127.0.0.1:11434/v1/"}, ""},
		"no model":                    {[]string{on, key}, "HUMANQA_AI_MODEL: must be set with HUMANQA_AI=openai"},
		"no key":                      {[]string{on, model}, "HUMANQA_AI_KEY: must be set with HUMANQA_AI=openai"},
		"an empty key":                {[]string{on, model, "HUMANQA_AI_KEY="}, "HUMANQA_AI_KEY: must be set with HUMANQA_AI=openai"},
		"a key of two lines":          {[]string{on, model, "HUMANQA_AI_KEY=sk-secret\n"}, "HUMANQA_AI_KEY: must be printable ASCII without blanks"},
		"a base URL that is none":     {[]string{on, model, key, "HUMANQA_AI_BASE_URL=models.example.com"}, "HUMANQA_AI_BASE_URL: is no URL that starts with http:// or https://"},
		"a base URL with a user": {
			[]string{on, model, key, "HUMANQA_AI_BASE_URL=https://u:sk-secret@models.example.com/v1"},
			"HUMANQA_AI_BASE_URL: must have no user, query or fragment: the key goes into HUMANQA_AI_KEY",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseConfig(c.environ)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("does not start: %v", err)
			case c.want != "" && (err == nil || err.Error() != c.want):
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestTheRulesWriteWhateverElseIsSet(t *testing.T) {
	t.Parallel()
	got, err := ParseConfig([]string{"HUMANQA_AI=rules", "HUMANQA_AI_MODEL=small", "HUMANQA_AI_KEY=sk-secret"})
	if err != nil || !reflect.DeepEqual(got.AI, ai.Config{}) {
		t.Errorf("got %+v, %v, want no model", got.AI, err)
	}
}

func TestTheKeysetIsAFileOrTheOutputOfAProgram(t *testing.T) {
	t.Parallel()
	const command = "HUMANQA_MASTER_KEY_COMMAND=curl -H secret"
	got, err := ParseConfig([]string{command})
	must.NoError(t, err)
	if shown := got.given["HUMANQA_MASTER_KEY_COMMAND"]; shown != "curl …" || got.MasterKeyCommand != "curl -H secret" {
		t.Errorf("%q is shown as %q", got.MasterKeyCommand, shown)
	}
	if _, err := ParseConfig([]string{command, "HUMANQA_MASTER_KEY_FILE=/srv/key.json"}); err == nil || !strings.Contains(err.Error(), "so there is no file of it") {
		t.Errorf("error %v", err)
	}
}
