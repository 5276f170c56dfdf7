package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

var (
	metricName = regexp.MustCompile(`\bhumanqa_[a-z_]+`)
	byLabels   = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	matchers   = regexp.MustCompile(`\{([^}]*)\}`)
	labelName  = regexp.MustCompile(`([a-z_]+)(?:=~|!=|!~|=)"`)
)

// asked is what an expression asks of the service: metrics, and the labels that it names.
// What Prometheus adds by itself is left out.
func asked(expr string) (metrics, labels []string) {
	metrics = metricName.FindAllString(expr, -1)
	for _, by := range byLabels.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			labels = append(labels, strings.TrimSpace(label))
		}
	}
	for _, set := range matchers.FindAllStringSubmatch(expr, -1) {
		for _, m := range labelName.FindAllStringSubmatch(set[1], -1) {
			labels = append(labels, m[1])
		}
	}
	return metrics, slices.DeleteFunc(labels, func(l string) bool { return l == "instance" || l == "job" || l == "le" })
}

// scrape gives the labels of each metric that the service shows.
func scrape(t *testing.T, address string) map[string][]string {
	t.Helper()
	res, err := http.Get("http://" + address + "/metrics") //nolint:noctx // the test's own service
	must.NoError(t, err)
	defer func() { _ = res.Body.Close() }() // read to its end
	body, err := io.ReadAll(res.Body)
	must.NoError(t, err)
	shown := map[string][]string{}
	for line := range strings.Lines(string(body)) {
		if name := metricName.FindString(line); name != "" && strings.HasPrefix(line, name) {
			shown[name] = nil
			for _, m := range labelName.FindAllStringSubmatch(line, -1) { // a route's own braces end no set
				shown[name] = append(shown[name], m[1])
			}
		}
	}
	return shown
}

// The rules and the board ask for metrics and labels that a running service shows, and each
// rule has its section in docs/alerts.md.
func alertsKnowMetrics(t *testing.T, p *instance) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	raw, err := os.ReadFile("../../deploy/prometheus/humanqa.rules.yml")
	must.NoError(t, err)
	must.NoError(t, yaml.Unmarshal(raw, &file))
	page, err := os.ReadFile("../../docs/alerts.md")
	must.NoError(t, err)
	tests, err := os.ReadFile("../../deploy/prometheus/humanqa.test.yml")
	must.NoError(t, err)
	exprs := map[string]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			exprs[rule.Alert] = rule.Expr
			if !strings.Contains(string(page), "\n## "+rule.Alert+"\n") || rule.Annotations["runbook_url"] != "file:///usr/share/doc/humanqa/alerts.md#"+strings.ToLower(rule.Alert) {
				t.Errorf("%s has no section in docs/alerts.md, or another runbook: %s", rule.Alert, rule.Annotations["runbook_url"])
			}
			if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" {
				t.Errorf("%s has the severity %q", rule.Alert, severity)
			}
			if n := strings.Count(string(tests), "alertname: "+rule.Alert+"\n"); n == 0 {
				t.Errorf("no test of promtool fires %s", rule.Alert)
			}
		}
	}
	if sections := strings.Count(string(page), "\n## Humanqa"); sections != len(exprs) || len(exprs) < 15 {
		t.Errorf("docs/alerts.md has %d sections for %d rules", sections, len(exprs))
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	raw, err = os.ReadFile("../../deploy/grafana/humanqa.json")
	must.NoError(t, err)
	must.NoError(t, json.Unmarshal(raw, &board))
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			exprs["the board's "+panel.Title+": "+target.Expr] = target.Expr
		}
	}

	cfg, err := service.ParseConfig(p.environ)
	must.NoError(t, err)
	_, key := p.newAccount(10)
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1))
	eventually.True(t, "the request is measured", func() bool {
		return scrape(t, cfg.AdminAddr)["humanqa_http_request_duration_seconds_count"] != nil
	})
	shown := scrape(t, cfg.AdminAddr)
	for name, expr := range exprs {
		metrics, labels := asked(expr)
		for _, metric := range metrics {
			if _, there := shown[metric]; !there {
				t.Errorf("%s asks for %s, which the service does not show", name, metric)
			}
		}
		for _, label := range labels {
			if !slices.ContainsFunc(metrics, func(m string) bool { return slices.Contains(shown[m], label) }) {
				t.Errorf("%s asks for the label %s, which none of %v has", name, label, metrics)
			}
		}
	}
	if metrics, labels := asked(`sum by (pool, x) (rate(humanqa_work_busy{status=~"5.."}[5m]))`); len(metrics) != 1 || !slices.Equal(labels, []string{"pool", "x", "status"}) {
		t.Errorf("an expression is read as %v %v", metrics, labels)
	}
}
