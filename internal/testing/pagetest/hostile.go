package pagetest

import (
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/httpapi/ui"
)

var wildcards = regexp.MustCompile(`\{[a-z]+\}`)

// HostileIDs calls each page whose pattern has the prefix begins, with ids that no service
// makes, one at a time. Each request must be refused without a server error. fill puts
// valid ids in the other places; token goes along with each form.
func (s *Service) HostileIDs(g Guest, begins string, fill func(pattern string) string, token string) {
	s.T.Helper()
	hostile := []string{
		"%00", "a%00b", "%FF", "%C3%28", "%ED%A0%80", "%0D%0A", "%E2%80%AE", "'", "%22%27%3B--", "..%2F..%2Fetc", "%2e%2e", "%25s",
		"{" + uuid.NewString() + "}", "urn:uuid:" + uuid.NewString(), uuid.NewString() + "%00", strings.Repeat("9", 40),
		strings.Repeat("x", 900), strings.Repeat("x", 8000),
	}
	walked := 0
	for _, p := range s.Site.Pages {
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

var fieldNames = regexp.MustCompile(` name="([a-z-]+)"`)

// Fields gives the names of all fields in the pages' forms, except those that HostileForms
// sets itself.
func (s *Service) Fields() (names []string) {
	s.T.Helper()
	seen := map[string]bool{"command": true, "token": true}
	for _, templates := range s.Site.Templates {
		s.Must(fs.WalkDir(templates, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".html") {
				return err
			}
			text, err := fs.ReadFile(templates, path)
			for _, found := range fieldNames.FindAllSubmatch(text, -1) {
				if name := string(found[1]); !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
			}
			return err
		}))
	}
	if len(names) < 10 {
		s.T.Errorf("the forms have %d fields: the test shows nothing", len(names))
	}
	return names
}

// HostileForms sends each form whose pattern has the prefix begins, with hostile texts in all
// its fields. The page must refuse invalid texts without a server error, no event may hold
// one, and every read model must go on. fill and token are those of HostileIDs. It may end
// the objects that the ids name.
func (s *Service) HostileForms(g Guest, begins string, fill func(pattern string) string, token string) {
	s.T.Helper()
	const long = "much too long "
	names, walked := s.Fields(), 0
	from, err := s.Log.Head(s.T.Context())
	s.Must(err)
	for _, p := range s.Site.Pages {
		if p.Method != http.MethodPost || !strings.HasPrefix(p.Pattern, begins) || g == (Guest{}) && p.For != ui.Anybody {
			continue
		}
		walked++
		for _, c := range []struct {
			text    string
			refused bool // by every form, before the page handles it
		}{
			{"a\x00b", true}, {"a\xffb", true}, {"a\xed\xa0\x80b", true},
			{"a\x01\x1b\x7f\u202e\u2028b", false}, {strings.Repeat(long, 5000), false},
		} {
			form := Form("token", token, "command", uuid.NewString())
			for _, name := range names {
				form.Set(name, c.text)
				if len(c.text) > 1000 { // shortened, so that the whole form is not too large
					form.Set(name, c.text[:min(len(c.text), 200_000/len(names))])
				}
			}
			path := fill(p.Pattern)
			if p.Upload {
				path, form = path+"?"+form.Encode(), nil
			}
			got := s.Send(g, http.MethodPost, path, strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded",
				"Sec-Fetch-Site", "same-origin")
			if c.refused && got.Status != http.StatusUnprocessableEntity || got.Status >= 500 {
				s.T.Errorf("%s %s with %.20q: %d", p.Method, p.Pattern, c.text, got.Status)
			}
		}
	}
	if walked == 0 {
		s.T.Errorf("no form begins with %s", begins)
	}
	s.Sound(from, strings.Repeat(long, 200))
}

// Sound checks the events that were appended behind a place: no text is unprintable or too
// long, and every consumer has applied them.
func (s *Service) Sound(from domain.Position, long string) {
	s.T.Helper()
	for end := false; !end; {
		var (
			events []eventstore.RawEvent
			err    error
		)
		events, from, end, err = s.Log.ReadAllRaw(s.T.Context(), from, false, 500)
		s.Must(err)
		for _, e := range events {
			for _, text := range []string{`\u0000`, `\ufffd`, "\uFFFD", long} {
				if strings.Contains(string(e.Data), text) {
					s.T.Errorf("%s in %s holds %.20q", e.Type, e.Stream, text)
				}
			}
		}
	}
	s.Shown(s.Log.Head(s.T.Context()))
	list, err := s.Consumers.Status(s.T.Context())
	s.Must(err)
	for _, status := range list {
		if len(status.Failed()) > 0 {
			s.T.Errorf("%s does not go on: %+v, set aside %+v", status.Name, status.Failure, status.SetAside)
		}
	}
}
