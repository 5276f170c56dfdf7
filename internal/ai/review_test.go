package ai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/guard"
)

const goodPage = `<!doctype html><html lang="en"><head><title>A good page</title>
	<meta name="viewport" content="width=device-width, initial-scale=1"></head><body>
	<h1>Good</h1><h2>More</h2><img src="/a.png" alt=""><form><label>Name <input name="name"></label></form>
	<a href="/about">About</a></body></html>`

func TestAGoodPagePasses(t *testing.T) {
	t.Parallel()
	s := secureSite(t, routes{"/": serve(goodPage), "/about": serve("about")})
	goldenReview(t, "review_good", review(t, reviewer(t, here, s), s.URL+"/"))
	if want := map[string]int{"GET /": 1, "HEAD /about": 1}; !maps.Equal(s.seen(), want) {
		t.Errorf("asked for %v, want %v", s.seen(), want)
	}
}

func TestEveryCheckCountsForATopicThatIsShown(t *testing.T) {
	t.Parallel()
	shown := []string{security, general.Label}
	for _, of := range catalogue.Topics {
		shown = append(shown, of.Label)
	}
	for _, c := range catalogue.Review {
		if !slices.Contains(shown, c.Topic) || c.Fix == "" || topicByKey[c.Key].fix != c.Fix || judges[c.Key] == nil {
			t.Errorf("incomplete: %s", c.Key)
		}
	}
	if len(judges) != len(catalogue.Review) {
		t.Errorf("%d checks are judged, there are %d", len(judges), len(catalogue.Review))
	}
}

func TestACheckNamesTheLimitThatItIsJudgedBy(t *testing.T) {
	t.Parallel()
	for key, limit := range map[string]string{
		job.AnswersKey: fmt.Sprintf("at most %d redirects", maxRedirects), "review-certificate": fmt.Sprintf("%d more days", goodExpiry),
		"review-redirects":     fmt.Sprintf("at most %d redirects", goodRedirects),
		"review-response-time": fmt.Sprintf("within %d seconds", goodTime/time.Second),
		"review-size":          fmt.Sprintf("at most %d MiB", goodSize>>20), "review-title": fmt.Sprintf("at most %d characters", goodTitle),
		"review-links": fmt.Sprintf("the first %d is", maxLinks),
	} {
		i := slices.IndexFunc(catalogue.Review, func(c check) bool { return c.Key == key })
		if i < 0 || !strings.Contains(catalogue.Review[i].Expected, limit) {
			t.Errorf("%s does not say %q", key, limit)
		}
	}
}

func TestABadPageFails(t *testing.T) {
	t.Parallel()
	s := secureSite(t, routes{"/": serve(`<html><head><title> </title></head><body><h2>x</h2><h4>y</h4>
		<img src="http://cdn.example.com/a.png"><img src="b.png">
		<form action="http://example.com/send"><input name="email" placeholder="E-mail"><textarea></textarea><input type=submit></form>
		<a href="/gone">x</a><a href="/gone#again">x</a><a href="broken">x</a><a href="https://other.example.com/">x</a>
		<a href="mailto:a@example.com">x</a><a href="javascript:void(0)">x</a></body></html>`), "/broken": status(http.StatusInternalServerError)})
	goldenReview(t, "review_bad", review(t, reviewer(t, here, s), s.URL+"/"))
	want := map[string]int{"GET /": 1, "HEAD /gone": 1, "GET /gone": 1, "HEAD /broken": 1, "GET /broken": 1}
	if !maps.Equal(s.seen(), want) {
		t.Errorf("asked for %v, want %v", s.seen(), want)
	}
}

func TestAPageThatCannotBeReachedIsAReportToo(t *testing.T) {
	t.Parallel()
	s := plainSite(t, nil)
	s.Close()
	r := review(t, reviewer(t, here), s.URL)
	goldenReview(t, "review_unreachable", r)
	b := command.AnalysisBrief{Submission: job.Submission{Type: job.AIReview, URL: s.URL}, Report: job.Completed{Items: r.Items}}
	wellFormedReport(t, b, analysisByRules(b))
}

func TestWhyAPageCannotBeReached(t *testing.T) {
	t.Parallel()
	trusted := secureSite(t, routes{"/": serve(goodPage)})
	elsewhere := newSite(t, "127.0.0.2:0", true, routes{"/": serve(goodPage)})
	plain := plainSite(t, routes{"/": serve(goodPage)})
	r := reviewer(t, guard.Allow{netip.MustParsePrefix("127.0.0.0/8")}, trusted)
	for name, c := range map[string]struct {
		rules *Rules
		url   string
		want  string
	}{
		"a certificate of nobody":   {reviewer(t, here), trusted.URL, "the certificate is not signed by a known authority"},
		"a certificate of another":  {r, elsewhere.URL, "the certificate is for another host"},
		"no TLS where it should be": {r, strings.Replace(plain.URL, "http:", "https:", 1), "the TLS handshake failed"},
		"a private address":         {reviewer(t, nil), trusted.URL, "it leads to an address that is private, reserved or not a web page's"},
		"a private name":            {reviewer(t, nil), "http://localhost/", "it leads to an address that is private, reserved or not a web page's"},
		"the metadata of a cloud":   {r, "http://169.254.169.254/latest/meta-data/", "it leads to an address that is private, reserved or not a web page's"},
		"another scheme":            {r, "file:///etc/passwd", "it leads to an address that is private, reserved or not a web page's"},
		"a password in the URL":     {r, "http://u:p@127.0.0.1/", "it leads to an address that is private, reserved or not a web page's"},
		"something that is no URL":  {r, "http://[::1", "it leads to an address that is private, reserved or not a web page's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := review(t, c.rules, c.url)
			wantLine(t, got, "review-answers", "fail: The page cannot be reached: "+c.want+".")
			wantLine(t, got, "review-title", "skip: The page could not be reached.")
		})
	}
}

func TestARedirectIntoAPrivateNetworkIsNotFollowed(t *testing.T) {
	t.Parallel()
	private := newSite(t, "127.0.0.2:0", false, routes{"/": serve(goodPage)})
	for name, to := range map[string]string{
		"another loopback address": private.URL + "/",
		"a private address":        "http://10.0.0.1/",
		"a name for this machine":  "http://app.localhost/",
		"another scheme":           "file:///etc/passwd",
		"a hidden password":        strings.Replace(private.URL, "http://", "http://u:p@", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plainSite(t, routes{
				"/":     redirect(to),
				"/page": serve(`<a href="/">out</a>`),
			})
			rules := reviewer(t, here)
			wantLine(t, review(t, rules, s.URL), "review-answers",
				"fail: The page cannot be reached: it leads to an address that is private, reserved or not a web page's.")
			wantLine(t, review(t, rules, s.URL+"/page"), "review-links",
				"fail: 1 of 1 link followed, 1 dead: "+s.URL+"/ (it leads to an address that is private, reserved or not a web page's).")
		})
	}
	t.Cleanup(func() {
		if seen := private.seen(); len(seen) > 0 {
			t.Errorf("the private site was asked for %v", seen)
		}
	})
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	pages := routes{"/0": serve(goodPage), "/loop": redirect("/loop"), "/nowhere": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusFound)
	}}
	for i := range 6 {
		pages[fmt.Sprintf("/%d", i+1)] = redirect(fmt.Sprintf("/%d", i))
	}
	secure := secureSite(t, pages)
	pages["/secure"] = redirect(secure.URL + "/0")
	plain := plainSite(t, pages)
	pages["/plain"] = redirect(plain.URL + "/0")
	rules := reviewer(t, here, secure)

	r := review(t, rules, plain.URL+"/2")
	wantLine(t, r, "review-redirects", "pass: 2 redirects.")
	wantLine(t, r, "review-https", "fail: The page is served without TLS, at "+plain.URL+"/0.")
	wantLine(t, r, "review-certificate", "skip: The page is not served over HTTPS.")
	wantLine(t, r, "review-mixed-content", "skip: The page itself is not served over HTTPS.")
	r = review(t, rules, secure.URL+"/5")
	wantLine(t, r, "review-answers", "pass: Status 200 at "+secure.URL+"/0.")
	wantLine(t, r, "review-redirects", "fail: 5 redirects.")
	wantLine(t, review(t, rules, secure.URL+"/6"), "review-answers", "fail: The page cannot be reached: more than 5 redirects.")
	wantLine(t, review(t, rules, secure.URL+"/loop"), "review-answers", "fail: The page cannot be reached: more than 5 redirects.")
	if n := secure.seen()["GET /loop"]; n != 6 {
		t.Errorf("went %d times around, want 6", n)
	}
	wantLine(t, review(t, rules, secure.URL+"/nowhere"), "review-answers", "fail: The page cannot be reached: a redirect leads nowhere.")
	wantLine(t, review(t, rules, plain.URL+"/secure"), "review-https", "pass: The http address leads to "+secure.URL+"/0.")
	wantLine(t, review(t, rules, secure.URL+"/plain"), "review-https",
		"fail: "+secure.URL+"/plain redirects from HTTPS to "+plain.URL+"/0.")
}

func TestAnAnswerThatIsNotThePage(t *testing.T) {
	t.Parallel()
	s := plainSite(t, routes{"/json": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json\u202e")
		_, _ = io.WriteString(w, "{}")
	}})
	rules := reviewer(t, here)
	r := review(t, rules, s.URL+"/gone")
	wantLine(t, r, "review-answers", "fail: Status 404 at "+s.URL+"/gone.")
	wantLine(t, r, "review-title", "skip: The answer is not the page but status 404.")
	r = review(t, rules, s.URL+"/json")
	wantLine(t, r, "review-answers", "pass: Status 200 at "+s.URL+"/json.")
	if got := line(t, r, "review-title"); !strings.HasPrefix(got, `skip: The answer is not an HTML page but "application/json`) {
		t.Errorf("the title is %q", got)
	}
}

func TestASlowSiteTakesNoLongerThanTheReview(t *testing.T) {
	t.Parallel()
	s := plainSite(t, routes{
		"/": hangs,
		"/body": func(w http.ResponseWriter, r *http.Request) {
			serve("<title>Half</title>")(w, r)
			_ = http.NewResponseController(w).Flush()
			hangs(w, r)
		},
		"/links": serve(`<title>Whole</title><a href="/">1</a><a href="/?2">2</a>`),
	})
	rules := reviewer(t, here)
	rules.pages.patience = 1500 * time.Millisecond
	for path, want := range map[string]map[string]string{
		"/":      {"review-answers": "fail: The page cannot be reached: there was no answer in time."},
		"/body":  {"review-size": "fail: The page broke off after 0 KiB.", "review-title": "pass: “Half”."},
		"/links": {"review-links": "skip: There was no time left to follow 2 links.", "review-title": "pass: “Whole”."},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			r := review(t, rules, s.URL+path)
			for key, line := range want {
				wantLine(t, r, key, line)
			}
		})
	}
}

// The connection behind such an answer is in nobody's hands: what is read from it
// has no end.
func TestAPageThatSwitchesProtocolsIsNoPage(t *testing.T) {
	t.Parallel()
	switches := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }() // the other side may have
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: anything\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the other side hangs up
	}
	s := plainSite(t, routes{"/": switches, "/link": serve(`<title>Fine</title><a href="/">1</a>`)})
	rules := reviewer(t, here)
	rules.pages.patience = time.Hour
	wantLine(t, review(t, rules, s.URL), "review-answers",
		"fail: The page cannot be reached: it answers with status 101, which no page has.")
	wantLine(t, review(t, rules, s.URL+"/link"), "review-links",
		"fail: 1 of 1 link followed, 1 dead: "+s.URL+"/ (it answers with status 101, which no page has).")
}

func TestAHugePageIsReadInPart(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	s := plainSite(t, routes{"/": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		chunk := []byte(strings.Repeat("<p>x", 16<<10))
		_, _ = io.WriteString(w, "<title>Huge</title>")
		for range 1 << 12 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}})
	r := review(t, reviewer(t, here), s.URL)
	wantLine(t, r, "review-size", "fail: More than 5 MiB; only that much was read.")
	wantLine(t, r, "review-title", "pass: “Huge”.")
	s.Close() // waits for the handler
	if n := sent.Load(); n > 32<<20 {
		t.Errorf("%d MiB were taken", n>>20)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, `<a href="/many/%d">x</a>`, i)
	}
	var running, most atomic.Int64
	pages := routes{
		"/": serve(`<base href="/in/"><a href="get-only">1</a><a href="private">2</a><a href="/in/moved">3</a><a href="//other.example.com/">4</a>`),
		"/in/get-only": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
		},
		"/in/private": status(http.StatusUnauthorized),
		"/in/moved":   redirect("/in/get-only"),
		"/many":       serve(many.String()),
	}
	for i := range 30 {
		pages[fmt.Sprintf("/many/%d", i)] = func(http.ResponseWriter, *http.Request) {
			most.Store(max(most.Load(), running.Add(1)))
			running.Add(-1)
		}
	}
	s := plainSite(t, pages)
	rules := reviewer(t, here)
	wantLine(t, review(t, rules, s.URL), "review-links", "pass: 3 of 3 links followed, 0 dead.")
	want := map[string]int{
		"GET /": 1, "HEAD /in/get-only": 2, "GET /in/get-only": 2, "HEAD /in/private": 1, "GET /in/private": 1,
		"HEAD /in/moved": 1, "GET /in/moved": 1,
	}
	if !maps.Equal(s.seen(), want) {
		t.Errorf("asked for %v, want %v", s.seen(), want)
	}
	wantLine(t, review(t, rules, s.URL+"/many"), "review-links", "pass: 20 of 20 links followed, 0 dead.")
	if n := most.Load(); n > 4 {
		t.Errorf("%d at a time, want at most 4", n)
	}
	if n := s.seen()["HEAD /many/20"]; n != 0 {
		t.Error("asked for more than 20 links")
	}
}

func TestWhatAPageSaysIsCutAndCleaned(t *testing.T) {
	t.Parallel()
	s := plainSite(t, routes{
		"/":     serve("<html lang='\u202eevil\n\x00'><title>\u202eIgnore\nall \x1b[31m" + strings.Repeat("x", 100_000) + "</title><img src='" + strings.Repeat("y", 100_000) + "'>"),
		"/down": serve("<title>a\u0000b</title>"),
	})
	r := review(t, reviewer(t, here), s.URL)
	wantLine(t, r, "review-language", "pass: “evil \ufffd”.")
	if got := line(t, r, "review-title"); !strings.HasPrefix(got, "fail: 500 characters: “Ignore all [31mxxx") {
		t.Errorf("the title is %q", got)
	}
	if got := line(t, r, "review-image-texts"); !strings.HasPrefix(got, "fail: 1 of 1 image without alt: yyy") || len(got) > 200 {
		t.Errorf("the images are %q", got)
	}
}

func TestASiteLearnsNothingButWhoAsks(t *testing.T) {
	t.Parallel()
	var got http.Header
	s := plainSite(t, routes{"/": func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		serve(goodPage)(w, r)
	}, "/set": func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b", Path: "/"})
		http.Redirect(w, r, "/", http.StatusFound)
	}})
	review(t, reviewer(t, here), s.URL+"/set")
	want := http.Header{
		"User-Agent": {userAgent}, "Accept": {"text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"}, "Accept-Encoding": {"gzip"},
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

func TestAReviewThatNobodyWaitsForEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := plainSite(t, routes{"/": func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}})
	got, err := reviewer(t, here).Review(ctx, s.URL)
	if !errors.Is(err, context.Canceled) || got.Items != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}
