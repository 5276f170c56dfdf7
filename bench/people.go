package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// ofPerson are the sessions of one person: each may load so many pages a minute.
const ofPerson = 10

// peopled is an account that people sign in to.
type peopled struct {
	id, key string
	logins  []string
}

const benchPassword = "a password for measuring"

func (s *service) openPeople(ctx context.Context, name string, n, credits int) (peopled, error) {
	var opened struct{ AccountID, APIKey, Link string }
	read := func(args ...string) error {
		out, err := call(ctx, s.environ, s.program, append([]string{"--json"}, args...)...)
		if err != nil {
			return err
		}
		return json.Unmarshal(out, &opened)
	}
	if err := read("account", "create", "--name", name, "--credits", strconv.Itoa(credits)); err != nil {
		return peopled{}, err
	}
	account := peopled{id: opened.AccountID, key: opened.APIKey}
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

// openSessions signs each of the account's people in ofPerson times, and gives the cookies.
func (s *service) openSessions(ctx context.Context, account peopled) (cookies []string, err error) {
	for _, login := range account.logins {
		for range ofPerson { // one after the other, because many password attempts at once are delayed
			cookie, err := s.enter(ctx, "/signin", url.Values{"login": {login}, "password": {benchPassword}})
			if err != nil {
				return nil, err
			}
			cookies = append(cookies, cookie)
		}
	}
	return cookies, nil
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

// browser follows no redirect and keeps a connection for each session.
var browser = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: finders * ofPerson},
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

// read loads a page to its end.
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
