package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"humanqa/internal/datadir"
)

// service asks a running service whether it is ready, and tries the addresses of a stopped one.
func (e *examination) service(ctx context.Context) []Finding {
	e.running = datadir.Owner(e.cfg.DataDir)
	if e.running != 0 {
		if problem := e.readiness(ctx); problem != nil {
			return wrong(problem, "docs/operations.md tells of each; its log has the reasons")
		}
		return ok("it runs as process %d and is ready", e.running)
	}
	for _, a := range []struct {
		setting, address string
		wanted           bool
	}{{"HUMANQA_ADDR", e.cfg.Addr, e.cfg.Roles.API}, {"HUMANQA_ADMIN_ADDR", e.cfg.AdminAddr, e.cfg.AdminAddrGiven}} {
		if !a.wanted || a.address == "" {
			continue
		}
		var config net.ListenConfig
		l, err := config.Listen(ctx, "tcp", a.address)
		if err != nil {
			return wrong(err, "stop the program that has it, or set "+a.setting+" to a free address")
		}
		_ = l.Close() // it was only tried
	}
	return note("it does not run here; its addresses are free", "humanqa serve starts it")
}

// readiness is the running service's own answer.
func (e *examination) readiness(ctx context.Context) error {
	address, scheme := e.cfg.AdminAddr, "http"
	if e.cfg.Roles.API {
		address = e.cfg.Addr
		if e.cfg.TLSCert != "" {
			scheme = "https"
		}
	}
	if address == "" {
		return nil // it has no address to be asked by
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	// The certificate names the outer host, and it has a finding of its own.
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // this machine, by its own address
	}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("process %d has the data directory, but does not answer: %w", e.running, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	var body struct {
		Error struct{ Message string }
	}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if json.Unmarshal(raw, &body) != nil || body.Error.Message == "" {
		body.Error.Message = resp.Status
	}
	return fmt.Errorf("process %d is not ready: %s", e.running, body.Error.Message)
}

// renewBefore is how long before its end a certificate should have been renewed.
const renewBefore = 14 * 24 * time.Hour

// tls looks at the certificate: its key, its end, and the host of the base URL.
func (e *examination) tls(context.Context) []Finding {
	if e.cfg.TLSCert == "" {
		return e.noTLS()
	}
	pair, err := tls.LoadX509KeyPair(e.cfg.TLSCert, e.cfg.TLSKey)
	if err != nil {
		return wrong(err, "set HUMANQA_TLS_CERT and HUMANQA_TLS_KEY to a pair that the service's user may read")
	}
	left := time.Until(pair.Leaf.NotAfter)
	switch {
	case left <= 0:
		return wrong(fmt.Errorf("the certificate ended on %s", pair.Leaf.NotAfter.Format(time.DateOnly)),
			"renew it: the service takes the new one by itself")
	case time.Now().Before(pair.Leaf.NotBefore):
		return wrong(fmt.Errorf("the certificate begins on %s", pair.Leaf.NotBefore.Format(time.DateOnly)), "check this machine's clock")
	}
	if u, err := url.Parse(e.cfg.BaseURL); err == nil && u.Hostname() != "" {
		if err := pair.Leaf.VerifyHostname(u.Hostname()); err != nil {
			return wrong(err, "get a certificate for the host of HUMANQA_BASE_URL")
		}
	}
	until := "valid until " + pair.Leaf.NotAfter.Format(time.DateOnly)
	if left < renewBefore {
		return note(until, "renew it soon: the service takes the new one by itself")
	}
	return ok("%s", until)
}

// noTLS says where plain HTTP would go over a network.
func (e *examination) noTLS() []Finding {
	host, _, _ := net.SplitHostPort(e.cfg.Addr) // it was checked
	ip := net.ParseIP(host)
	switch {
	case !e.cfg.Roles.API:
		return ok("this process serves no API")
	case host == "localhost" || ip != nil && ip.IsLoopback():
		return ok("plain HTTP, on this machine only")
	case strings.HasPrefix(e.cfg.BaseURL, "https://"):
		return ok("plain HTTP, behind a proxy that ends TLS")
	}
	return note("plain HTTP at "+e.cfg.Addr, "put a proxy with TLS in front, or set HUMANQA_TLS_CERT")
}

const (
	// hostsLooked is how many hosts of webhooks are looked up at most, and hostsNamed how
	// many of those without an address the line names.
	hostsLooked = 100
	hostsNamed  = 5
)

const hookURLsSQL = `
SELECT DISTINCT url
FROM webhooks.endpoints
WHERE url <> '' AND enabled
LIMIT 10000`

// webhooks looks up the hosts of the endpoints, and reads the further authorities.
func (e *examination) webhooks(ctx context.Context) []Finding {
	if file := e.cfg.WebhookCAFile; file != "" {
		content, err := os.ReadFile(file)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(content) {
			err = fmt.Errorf("%s holds no certificate (PEM)", file)
		}
		if err != nil {
			return wrong(err, "set HUMANQA_WEBHOOK_CA_FILE to the certificate of your authority")
		}
	}
	if e.db == nil {
		return note("without a database the endpoints are not known", "run the doctor again once the database answers")
	}
	var urls []string
	if err := e.db.SelectContext(ctx, &urls, hookURLsSQL); err != nil {
		return note("the endpoints cannot be read: "+err.Error(), "humanqa serve makes the tables")
	}
	hosts := namesIn(urls)
	if len(hosts) == 0 {
		return ok("no endpoint has a host to look up")
	}
	unknown, failed := lookUp(ctx, hosts)
	switch {
	case failed != nil:
		return wrong(failed, "check the name servers of this machine (/etc/resolv.conf)")
	case len(unknown) > 0:
		return note(fmt.Sprintf("%d of %d hosts have no address, such as %s", len(unknown), len(hosts),
			strings.Join(unknown[:min(len(unknown), hostsNamed)], ", ")), "tell their owners; the dashboard shows their failed deliveries")
	}
	return ok("%d hosts have addresses", len(hosts))
}

// namesIn are the hosts of the URLs that are no addresses.
func namesIn(urls []string) (hosts []string) {
	for _, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil || slices.Contains(hosts, u.Hostname()) {
			continue
		}
		if hosts = append(hosts, u.Hostname()); len(hosts) == hostsLooked {
			break
		}
	}
	slices.Sort(hosts)
	return hosts
}

// lookUp gives the hosts without an address, in order. It fails where no name server says so
// and none has an address: then the look-up itself is broken.
func lookUp(ctx context.Context, hosts []string) (unknown []string, failed error) {
	errs := make([]error, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() { _, errs[i] = net.DefaultResolver.LookupNetIP(ctx, "ip", host) })
	}
	all.Wait()
	answered := false
	for i, err := range errs {
		var refusal *net.DNSError
		if err == nil || errors.As(err, &refusal) && refusal.IsNotFound {
			answered = true
		} else {
			failed = err
		}
		if err != nil {
			unknown = append(unknown, hosts[i])
		}
	}
	if answered {
		failed = nil
	}
	return unknown, failed
}

// mail connects to the mail server.
func (e *examination) mail(ctx context.Context) []Finding {
	if e.cfg.Mail == nil {
		return nil
	}
	if err := e.cfg.Mail.Reachable(ctx); err != nil {
		return wrong(err, "check host and port in HUMANQA_SMTP_URL, and that this machine may reach them")
	}
	return ok("the mail server takes connections")
}

// model connects to the server of the language model.
func (e *examination) model(ctx context.Context) []Finding {
	if e.cfg.AI.Model == "" || e.cfg.AI.BaseURL == "" {
		return nil
	}
	u, err := url.Parse(e.cfg.AI.BaseURL)
	if err != nil {
		return wrong(errors.New("HUMANQA_AI_BASE_URL is no URL"), "set it to the server's address")
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme // http or https, which the system knows
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return wrong(err, "check HUMANQA_AI_BASE_URL; until it answers the rules do the model's work")
	}
	_ = conn.Close() // it was only tried
	return ok("the model's server takes connections")
}
