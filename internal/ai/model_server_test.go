package ai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain/command"
	"humanqa/domain/job"
)

const testKey = "sk-the-key-that-nobody-sees"

// asked is a request as the server saw it.
type asked struct {
	path    string
	headers http.Header
	body    struct {
		Model          string
		Messages       []struct{ Role, Content string }
		ResponseFormat struct {
			Type       string
			JSONSchema struct {
				Name   string
				Strict bool
				Schema any
			} `json:"json_schema"`
		} `json:"response_format"`
	}
}

// modelServer speaks the protocol: each request gets the next reply, the last
// one again and again.
type modelServer struct {
	*Model
	log    *bytes.Buffer
	waits  []time.Duration
	failed []string // tasks that the rules did

	mu       sync.Mutex // guards the rest
	requests []asked
	replies  []http.HandlerFunc
}

func serveModel(t *testing.T, replies ...http.HandlerFunc) *modelServer {
	t.Helper()
	s := &modelServer{replies: replies, log: new(bytes.Buffer)}
	server := httptest.NewServer(http.HandlerFunc(s.next))
	t.Cleanup(server.Close)
	log := logrus.New()
	log.SetOutput(s.log)
	log.SetLevel(logrus.TraceLevel)
	m, ok := New(Config{Model: "small", BaseURL: server.URL + "/v1", Key: testKey, Log: log, Failed: func(task string) {
		s.failed = append(s.failed, task)
	}}).(*Model)
	if !ok {
		t.Fatal("a model is configured, but not asked")
	}
	m.chat.wait = func(_ context.Context, d time.Duration) error {
		s.waits = append(s.waits, d)
		return nil
	}
	s.Model = m
	t.Cleanup(func() {
		if said := s.log.String(); strings.Contains(said, testKey) || strings.Contains(said, server.URL) {
			t.Errorf("the log tells too much: %s", said)
		}
	})
	return s
}

func (s *modelServer) next(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	a := asked{path: r.Method + " " + r.URL.Path, headers: r.Header}
	if err == nil {
		err = json.Unmarshal(body, &a.body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	s.mu.Lock()
	reply := s.replies[min(len(s.requests), len(s.replies)-1)]
	s.requests = append(s.requests, a)
	s.mu.Unlock()
	reply(w, r)
}

func (s *modelServer) seen() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func completes(w http.ResponseWriter, choice string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","created":1,"model":"small","choices":[%s],
		"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, choice)
}

// says replies with a text of the model.
func says(answer string) http.HandlerFunc {
	content, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return chooses(`{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":` + string(content) + `}}`)
}

func chooses(choice string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { completes(w, choice) }
}

func refuses(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		// Some servers repeat what they were sent.
		_, _ = fmt.Fprintf(w, `{"error":{"message":"no: %s","type":"x","code":"y","param":null}}`, r.Header.Get("Authorization"))
	}
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// written is a list of n items as a model writes it.
func written(n int) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`{"description":"Do thing %d.","expectedOutcome":"It works.","severity":"minor"}`, i))
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

var listBrief = command.ChecklistBrief{
	Submission: job.Submission{
		AccountID: "acc-1", Type: job.Custom, URL: "https://app.example.com/start?token=t0ken#frag",
		Title: "Start", Description: "Look around", Feature: "search",
	},
	Opening: []job.Item{{Key: "k", Description: "The total is wrong"}},
	Failures: []command.Regression{
		{Item: job.Item{Key: "k", Description: "The total is wrong"}}, {Item: job.Item{Key: "new", Description: "The cart forgets"}},
	},
}

// analysed is an answer about shopReport.
const analysed = `{"executiveSummary":"Paying is broken.","bugs":[
	{"itemId":"item-1","title":"Empty forms pass","description":"No message is shown.","reproductionSteps":["Open it.","Submit."],"suggestedFix":"Validate."},
	{"itemId":"item-2","title":"Tax twice","description":"The tax is added twice.","reproductionSteps":["Open it."],"suggestedFix":"Add once."}],
	"strengths":["Sign-in works."],"recommendations":["Fix the tax."]}`

// finishedByRules wants the rules' own list, after so many requests.
func (s *modelServer) finishedByRules(t *testing.T, requests int) {
	t.Helper()
	items, by, err := s.Checklist(t.Context(), listBrief)
	if err != nil || by != "rules" || !reflect.DeepEqual(items, checklistByRules(listBrief)) {
		t.Errorf("got %+v by %q, %v", items, by, err)
	}
	if n := len(s.seen()); n != requests {
		t.Errorf("%d requests, want %d", n, requests)
	}
	if said := s.log.String(); strings.Count(said, "the rules do") != 1 {
		t.Errorf("the log does not say once that the rules do it: %s", said)
	}
	if !slices.Equal(s.failed, []string{"checklist"}) {
		t.Errorf("what is told of failures is %q", s.failed)
	}
}

// finishedByModel wants the model's list, after so many requests.
func (s *modelServer) finishedByModel(t *testing.T, requests int) {
	t.Helper()
	items, by, err := s.Checklist(t.Context(), listBrief)
	if err != nil || by != "small" || len(items) != 7 || items[6].Description != "Do thing 6." {
		t.Errorf("got %+v by %q, %v", items, by, err)
	}
	if n := len(s.seen()); n != requests {
		t.Errorf("%d requests, want %d", n, requests)
	}
	if s.log.Len() > 0 {
		t.Errorf("the log complains: %s", s.log)
	}
}
