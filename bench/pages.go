package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pageReaders are signed in at a time: each may load so many pages a minute.
	pageReaders = 10
	dashboards  = 200
	// tabs are the dashboards of one session: it may load 600 pages a minute.
	tabs = 2
	// ofPerson are the dashboards of one person, who may have so many open.
	ofPerson = 20
	// changeRate is how often something changes in the busy account.
	changeRate = 4
	// refetchPause is the browser's wait between two fetches of a page.
	refetchPause = 250 * time.Millisecond
	// openEnough is how long the dashboards are watched. It is long, because changeRate
	// gives only four samples a second.
	openEnough = 20 * time.Second
)

// pages is part (h): a page of a long list, and many open dashboards of one
// account that is busy.
func pages(ctx context.Context, b *bench) (section, error) {
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	account, err := s.openPeople(ctx, dashboards/ofPerson)
	if err != nil {
		return section{}, s.ifDead(err)
	}
	if _, err := s.submitBulk(ctx, account.key, "", listedJobs); err != nil {
		return section{}, s.ifDead(err)
	}
	sessions, err := s.openSessions(ctx, account, dashboards)
	if err != nil {
		return section{}, s.ifDead(err)
	}

	took := max(10*time.Second, 3*b.round)
	var list sample
	for range 2 { // the first one warms up
		if list, err = s.timedPage(ctx, took, sessions[:tabs*pageReaders]); err != nil {
			return section{}, s.ifDead(err)
		}
	}

	alone, before, err := s.busy(ctx, account.key)
	if err != nil {
		return section{}, s.ifDead(err)
	}
	watching, leave := context.WithCancel(ctx)
	var fetched atomic.Int64
	var opening sync.WaitGroup
	opening.Add(len(sessions))
	watched := make(chan error, 1)
	go func() { watched <- s.watch(watching, sessions, opening.Done, &fetched) }()
	opening.Wait() // the simultaneous opening is not measured
	crowded, during, err := s.busy(ctx, account.key)
	leave()
	if err := errors.Join(err, <-watched); err != nil {
		return section{}, s.ifDead(err)
	}
	return section{
		Title: "pages: a long list, and many open dashboards of one busy account",
		Notes: []string{
			fmt.Sprintf("an account with %d jobs; its first page of 50 %d times a second for %s, timed from when it was due", listedJobs,
				readRate, took),
			fmt.Sprintf(
				"%d open dashboards of it while %d jobs a second are submitted for %s; each fetches itself when told of a change, as a browser does", dashboards, changeRate, openEnough),
			"cores: the service's process and its Postgres, with the dashboards less without them",
		},
		Measurements: []measurement{
			summarise("GET /dashboard/jobs", "service", []sample{list}),
			summarise("POST /v1/jobs", "alone", []sample{alone}),
			summarise("POST /v1/jobs", "with open dashboards", []sample{crowded}),
		},
		Figures: []figure{
			{"pages fetched a second", float64(fetched.Load()) / openEnough.Seconds(), ""},
			{"cores without dashboards", before, ""},
			{"cores with them", during, ""},
		},
		Goals: []goal{
			below("page of 50 in 100,000 jobs, p99", millis(list.quantile(0.99)), 40, "ms"),
			below("cores of 200 open dashboards", during-before, 1, ""),
			below("POST /v1/jobs beside them to alone, p99", float64(crowded.quantile(0.99))/float64(alone.quantile(0.99)), 1.5, ""),
		},
	}, nil
}

// peopled is an account that people sign in to.
type peopled struct {
	key    string
	logins []string
}

const benchPassword = "a password for measuring"

func (s *service) openPeople(ctx context.Context, n int) (peopled, error) {
	var opened struct{ AccountID, APIKey, Link string }
	read := func(args ...string) error {
		out, err := call(ctx, s.environ, s.program, append([]string{"--json"}, args...)...)
		if err != nil {
			return err
		}
		return json.Unmarshal(out, &opened)
	}
	if err := read("account", "create", "--name", "watched", "--credits", strconv.Itoa(plenty)); err != nil {
		return peopled{}, err
	}
	account := peopled{key: opened.APIKey}
	for i := range n {
		if err := read("person", "invite", "--account", opened.AccountID, "--role", "owner", "--name", "Bench"); err != nil {
			return peopled{}, err
		}
		_, token, _ := strings.Cut(opened.Link, "/join/")
		login := fmt.Sprint("bench", i)
		if _, err := s.enter(ctx, "/join/"+token, url.Values{"name": {"Bench"}, "login": {login}, "password": {benchPassword}}); err !=
			nil {
			return peopled{}, err
		}
		account.logins = append(account.logins, login)
	}
	return account, nil
}

// openSessions signs the account's people in. Each of so many dashboards gets a cookie,
// which tabs of them share.
func (s *service) openSessions(ctx context.Context, account peopled, dashboards int) ([]string, error) {
	// One after the other, because many password attempts at once are delayed.
	sessions := make([]string, dashboards)
	for i := 0; i < dashboards; i += tabs {
		cookie, err := s.signIn(ctx, account.logins[i/ofPerson])
		if err != nil {
			return nil, err
		}
		for tab := range tabs {
			sessions[i+tab] = cookie
		}
	}
	return sessions, nil
}

func (s *service) signIn(ctx context.Context, login string) (cookie string, err error) {
	return s.enter(ctx, "/signin", url.Values{"login": {login}, "password": {benchPassword}})
}

// enter sends a form that opens a session, and gives its cookie.
func (s *service) enter(ctx context.Context, path string, form url.Values) (cookie string, err error) {
	answer, err := s.page(ctx, http.MethodPost, path, "", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	for _, c := range answer.Cookies() {
		if answer.StatusCode == http.StatusSeeOther {
			return c.Name + "=" + c.Value, nil
		}
	}
	return "", fmt.Errorf("POST %s: %s opens no session", path, answer.Status)
}

// browser follows no redirect and keeps a connection for each dashboard.
var browser = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 2 * dashboards},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// page sends what a browser does; the pages are at this machine's name.
func (s *service) page(ctx context.Context, method, path, cookie string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return nil, err
	}
	request.Host = "localhost" + s.url[strings.LastIndex(s.url, ":"):]
	if cookie != "" {
		request.Header.Set("Cookie", cookie)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return browser.Do(request)
}

// look loads a page to its end.
func (s *service) look(ctx context.Context, path, cookie string) error {
	return s.read(ctx, path, cookie, io.Discard)
}

func (s *service) read(ctx context.Context, path, cookie string, into io.Writer) error {
	answer, err := s.page(ctx, http.MethodGet, path, cookie, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(into, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	return nil
}

func (s *service) timedPage(ctx context.Context, took time.Duration, sessions []string) (sample, error) {
	return timedLoop(ctx, readRate, took, func(ctx context.Context, i int) error {
		return s.look(ctx, "/dashboard/jobs", sessions[i%len(sessions)])
	})
}

// busy submits jobs at changeRate and gives how long each took, and how many
// cores were at work.
func (s *service) busy(ctx context.Context, key string) (sample, float64, error) {
	began, err := cpuTime(s.cmd.Process.Pid)
	if err != nil {
		return sample{}, 0, err
	}
	got, err := timedLoop(ctx, changeRate, openEnough, func(ctx context.Context, _ int) error {
		return s.call(ctx, http.StatusCreated, http.MethodPost, "/v1/jobs", key, json.RawMessage(submission), nil)
	})
	if err != nil {
		return sample{}, 0, err
	}
	ended, err := cpuTime(s.cmd.Process.Pid)
	return got, (ended - began).Seconds() / openEnough.Seconds(), err
}

// watch has a dashboard open in each session until ctx ends. It calls opened for each,
// and fetches a dashboard when something changes.
func (s *service) watch(ctx context.Context, sessions []string, opened func(), fetched *atomic.Int64) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var open sync.WaitGroup
	for _, cookie := range sessions {
		open.Go(func() {
			if err := s.dashboard(inner, cookie, opened, fetched); err != nil && inner.Err() == nil {
				cancel(err)
			}
		})
	}
	open.Wait()
	if ctx.Err() != nil {
		return nil // told to stop
	}
	return context.Cause(inner)
}

func (s *service) dashboard(ctx context.Context, cookie string, opened func(), fetched *atomic.Int64) error {
	//nolint:bodyclose // it is closed below: the linter does not see through page
	stream, err := s.page(ctx, http.MethodGet, "/live", cookie, nil)
	opened() // or it failed, and then the watch ends
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	changed := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(stream.Body)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: ") {
				select {
				case changed <- struct{}{}:
				default: // one waiting change stands for all
				}
			}
		}
		ended <- errors.Join(lines.Err(), fmt.Errorf("GET /live: %s ended", stream.Status))
	}()
	for {
		select {
		case <-changed:
			if err := s.look(ctx, "/dashboard", cookie); err != nil {
				return err
			}
			fetched.Add(1)
			time.Sleep(refetchPause)
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}
