package service

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"humanqa/internal/guard"
	"humanqa/internal/testing/must"
)

func TestWhereTheServiceIsIsNoPageUnderTest(t *testing.T) {
	t.Parallel()
	asked := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(asked.Close)
	here := strings.TrimPrefix(asked.URL, "http://")
	targets, err := guard.ParseTargets("127.0.0.0/8")
	must.NoError(t, err)
	for name, c := range map[string]struct {
		cfg      Config
		postgres string
		own      bool
	}{
		"nothing":                  {own: false},
		"the API":                  {cfg: Config{environment: environment{Addr: here}}, own: true},
		"the API at every address": {cfg: Config{environment: environment{Addr: strings.Replace(here, "127.0.0.1", "0.0.0.0", 1)}}, own: true},
		"operators' pages":         {cfg: Config{environment: environment{AdminAddr: here}}, own: true},
		"voice":                    {cfg: Config{environment: environment{VoiceAddr: here}}, own: true},
		"the log":                  {cfg: Config{environment: environment{EventStoreListen: here}}, own: true},
		"another log":              {cfg: Config{environment: environment{EventStoreURL: "esdb://admin:pw@192.0.2.1:2113," + here + "?tls=false"}}, own: true},
		"a log at its usual port":  {cfg: Config{environment: environment{EventStoreURL: "esdb://127.0.0.1?tls=false"}}, own: false},
		"Postgres, for analysts":   {cfg: Config{environment: environment{PostgresListen: here}}, own: true},
		"Postgres":                 {postgres: "postgres://u:p@" + here + "/db", own: true},
		"Postgres, in the query":   {postgres: "postgres:///db?host=127.0.0.1&port=" + here[len("127.0.0.1:"):], own: true},
		"one of two Postgres":      {postgres: "postgres://u:p@192.0.2.1:5432," + here + "/db", own: true},
		"Postgres' socket":         {postgres: "postgres:///db?host=/run/pg&port=" + here[len("127.0.0.1:"):], own: false},
	} {
		pages := guard.Pages{Allow: targets, Own: ownAddresses(c.cfg, c.postgres)}
		conn, err := pages.DialContext(t.Context(), "tcp", here)
		if err == nil {
			must.NoError(t, conn.Close())
		}
		if (err != nil) != c.own {
			t.Errorf("%s: %v, want own=%v", name, err, c.own)
		}
	}
}
