package pagetest

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
)

var wildcards = regexp.MustCompile(`\{[a-z]+\}`)

// HostileIDs opens each page whose pattern begins so with ids that no service makes, one
// at a time: whoever sent them is refused, and nothing breaks. fill puts ids that are
// there in the other places; token goes along with each form.
func (s *Service) HostileIDs(g Guest, begins string, fill func(pattern string) string, token string) {
	s.T.Helper()
	hostile := []string{
		"%00", "a%00b", "%FF", "%C3%28", "%ED%A0%80", "%0D%0A", "%E2%80%AE", "'", "%22%27%3B--", "..%2F..%2Fetc", "%2e%2e", "%25s",
		"{" + uuid.NewString() + "}", "urn:uuid:" + uuid.NewString(), uuid.NewString() + "%00", strings.Repeat("9", 40), strings.Repeat("x", 900), strings.Repeat("x", 8000),
	}
	walked := 0
	for _, p := range s.Site.Table() {
		if !strings.HasPrefix(p.Pattern, begins) {
			continue
		}
		for _, name := range wildcards.FindAllString(p.Pattern, -1) {
			for _, id := range hostile {
				walked++
				var form url.Values
				if p.Method == http.MethodPost {
					form = Form("token", token, "reason", "why not", "command", uuid.NewString())
				}
				path := fill(strings.Replace(p.Pattern, name, id, 1))
				began := time.Now()
				if got := s.Call(g, p.Method, path, form); got.Status < 400 || got.Status >= 500 {
					s.T.Errorf("%s %.120s: %d after %s", p.Method, path, got.Status, time.Since(began))
				}
			}
		}
	}
	if walked == 0 {
		s.T.Errorf("no page begins with %s", begins)
	}
}
