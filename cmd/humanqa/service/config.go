package service

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/sirupsen/logrus"

	"humanqa/eventstore/node"
	"humanqa/httpapi/admit"
	"humanqa/internal/ai"
	"humanqa/internal/blob"
	"humanqa/internal/guard"
	"humanqa/internal/hosting"
	"humanqa/internal/mail"
)

// environment is every HUMANQA_* variable there is, and the one table of them. The list
// of known names, humanqa serve --help and docs/settings.md are made of the tags. unset
// says which value holds where there is no default. A new setting is a field here, a line of
// readers if its type has to be read, and the place that uses it.
type environment struct {
	Addr                     string          `env:"HUMANQA_ADDR" envDefault:"127.0.0.1:8080" about:"where it listens"`
	BaseURL                  string          `env:"HUMANQA_BASE_URL" unset:"http://$HUMANQA_ADDR, https:// with a certificate" about:"starts every URL that is handed out"`
	TLSCert                  string          `env:"HUMANQA_TLS_CERT" unset:"plain HTTP" about:"file with the certificate and its chain (PEM), to serve HTTPS; a renewed one is taken by itself"`
	TLSKey                   string          `env:"HUMANQA_TLS_KEY" about:"file with its key (PEM)"`
	TrustedProxies           guard.Allow     `env:"HUMANQA_TRUSTED_PROXIES" unset:"none" about:"networks of proxies in front, as CIDRs: their X-Forwarded-For and X-Forwarded-Proto are believed"`
	AdminAddr                string          `env:"HUMANQA_ADMIN_ADDR" envDefault:"127.0.0.1:9090" about:"metrics, profiles and health, without a password, by this address and loopback names only; off for none"`
	VoiceChoice              string          `env:"HUMANQA_VOICE" envDefault:"embedded" about:"voice chat in sessions: embedded, or off"`
	VoiceAddr                string          `env:"HUMANQA_VOICE_ADDR" unset:"port 7882 beside HUMANQA_ADDR" about:"where voice listens, by UDP and by TCP; browsers must reach it"`
	VoicePublic              []string        `env:"HUMANQA_VOICE_PUBLIC" unset:"where it listens" about:"IP addresses by which browsers reach it, by commas, behind NAT"`
	DataDir                  string          `env:"HUMANQA_DATA_DIR" envDefault:".humanqa" about:"the directory of the embedded Postgres, keys, evidence and sockets; mode 0700"`
	DatabaseURL              string          `env:"HUMANQA_DATABASE_URL" unset:"the embedded Postgres" about:"your own Postgres, postgres://…"`
	DatabaseDirectURL        string          `env:"HUMANQA_DATABASE_DIRECT_URL" unset:"HUMANQA_DATABASE_URL" about:"Postgres itself, where HUMANQA_DATABASE_URL is a pooler in transaction mode: for what needs a session"`
	DatabaseConnections      int             `env:"HUMANQA_DATABASE_CONNECTIONS" envDefault:"12" about:"sessions that this process has at HUMANQA_DATABASE_URL at most"`
	PostgresListen           string          `env:"HUMANQA_POSTGRES_LISTEN" unset:"loopback only" about:"TCP address, with a port, at which the embedded Postgres lets analysts in from other machines, with TLS and passwords"`
	EventStoreURL            string          `env:"HUMANQA_EVENTSTORE_URL" unset:"the embedded node" about:"your own EventStoreDB or KurrentDB, or another service's node, esdb://… (also kurrentdb://…)"`
	EventStoreListen         string          `env:"HUMANQA_EVENTSTORE_LISTEN" unset:"a unix socket only" about:"TCP address for the embedded node, with TLS and a password that is printed once"`
	EventStoreListenInsecure string          `env:"HUMANQA_EVENTSTORE_LISTEN_INSECURE" unset:"a unix socket only" about:"loopback TCP address for the embedded node, without either"`
	EventStoreMaxAppend      int             `env:"HUMANQA_EVENTSTORE_MAX_APPEND" envDefault:"1048576" about:"bytes of data, metadata and names that the embedded node takes in one append of other clients, up to 16767216; the service needs no more than the default"`
	MasterKeyFile            string          `env:"HUMANQA_MASTER_KEY_FILE" unset:"in the data directory" about:"the keyset that every secret is sealed under"`
	MasterKeyCommand         string          `env:"HUMANQA_MASTER_KEY_COMMAND" unset:"HUMANQA_MASTER_KEY_FILE" about:"a program, and its arguments behind blanks, whose standard output is the keyset; docs/keys.md"`
	EvidenceURL              string          `env:"HUMANQA_EVIDENCE_URL" unset:"in the data directory" about:"where checkers' pictures and videos go: file:///dir, or s3://bucket?region=… with endpoint=… and use_path_style=true for other servers that speak S3"`
	RecordingLimit           int64           `env:"HUMANQA_RECORDING_LIMIT" envDefault:"1073741824" about:"bytes that a checker may record of one job; of all jobs of 24 hours, eight times as many"`
	AIChoice                 string          `env:"HUMANQA_AI" envDefault:"rules" about:"the writer of checklists and AI reports: rules, or openai for any server with OpenAI's chat completions"`
	AIBaseURL                string          `env:"HUMANQA_AI_BASE_URL" unset:"OpenAI's own" about:"the server to ask, with openai"`
	AIModel                  string          `env:"HUMANQA_AI_MODEL" about:"the model to ask, with openai"`
	AIKey                    ai.Secret       `env:"HUMANQA_AI_KEY" about:"the key to it, with openai; a server without keys takes any word"`
	WebhookAllow             guard.Allow     `env:"HUMANQA_WEBHOOK_ALLOW" unset:"public addresses only" about:"private networks that may be delivered to, as CIDRs"`
	WebhookCAFile            string          `env:"HUMANQA_WEBHOOK_CA_FILE" unset:"the system's" about:"further CA certificates trusted for deliveries"`
	SMTPURL                  string          `env:"HUMANQA_SMTP_URL" unset:"no e-mail" about:"the mail server that takes notices to people: smtp://user:password@host:587 (with STARTTLS; ?starttls=off for a server without it) or smtps://…; the same in every process"`
	SMTPFrom                 string          `env:"HUMANQA_SMTP_FROM" about:"the sender of e-mail, such as humanqa <qa@example.com>"`
	GitHubURL                string          `env:"HUMANQA_GITHUB_API_URL" envDefault:"https://api.github.com" about:"GitHub's API, for commit statuses; of an own server https://HOST/api/v3 (in a private network with HUMANQA_WEBHOOK_ALLOW)"`
	GitLabURL                string          `env:"HUMANQA_GITLAB_API_URL" envDefault:"https://gitlab.com/api/v4" about:"GitLab's API, for commit statuses"`
	TargetAllow              guard.Targets   `env:"HUMANQA_TARGET_ALLOW" unset:"public hosts only" about:"private hosts that any account may test and AI reviews may fetch: CIDRs, and suffixes of names, by commas"`
	MaxConnections           int             `env:"HUMANQA_MAX_CONNECTIONS" envDefault:"10000" about:"connections that HUMANQA_ADDR has open at a time, half of the files that the process may open at most; one more closes the one that waits longest"`
	StopDelaySeconds         int             `env:"HUMANQA_STOP_DELAY" envDefault:"0" about:"seconds for which a stop serves on with /readyz at 503, so that the proxy in front takes this process out first; up to 30"`
	RateLimit                int             `env:"HUMANQA_RATE_LIMIT" envDefault:"60" about:"requests per API key in any minute"`
	CreditsURL               string          `env:"HUMANQA_CREDITS_URL" unset:"no button" about:"the page on which customers buy credits, for the button Buy credits where credits are short"`
	CloseEvery               int             `env:"HUMANQA_CLOSE_EVERY" envDefault:"250" about:"events after which an account's ledger is closed, so that the first command after a restart need not read it from its beginning"`
	HostedDomains            hosting.Domains `env:"HUMANQA_HOSTED_DOMAINS" unset:"those that are known" about:"domains of hosted-app platforms, by commas"`
	RoleNames                string          `env:"HUMANQA_ROLES" envDefault:"api,projector,webhooks,policy" about:"the parts that this process runs"`
	CheckHours               int             `env:"HUMANQA_CHECK_HOURS" envDefault:"24" about:"hours between two checks of every invariant, as humanqa fsck does them, one at a time over all processes; 0 for none"`
	ProjectionsDir           string          `env:"HUMANQA_PROJECTIONS" unset:"none" about:"a directory whose *.yaml files are added at each start, as humanqa projections add does; for the role projector"`
	LogFormat                string          `env:"HUMANQA_LOG_FORMAT" unset:"text on a terminal, else json" about:"text or json"`
	LogClientAddress         string          `env:"HUMANQA_LOG_CLIENT_ADDRESS" envDefault:"off" about:"on names the client's address in the log's line of each request, of IPv6 the network: off keeps no address"`
	LogLevelName             string          `env:"HUMANQA_LOG_LEVEL" envDefault:"info" about:"debug, info, warn or error"`
}

// The test suite's own settings may stand in the environment of a service that
// a test starts.
const testPrefix = "HUMANQA_TEST_"

// Config is the checked environment. Everything in it can be relied on as far as that can
// be known before anything is started.
type Config struct {
	// environment has the values as they were given, with these differences. URLs have no
	// slash at their end. BaseURL is empty until the listener is bound unless it was
	// given. An empty AdminAddr is off. DataDir is absolute. VoiceAddr, MasterKeyFile and
	// EvidenceURL have their defaults. A WebhookCAFile may appear later.
	environment

	AdminAddrGiven bool // else a start goes on without that very address
	Voice          bool
	VoiceAddrGiven bool         // else a start goes on without that very address
	AI             ai.Config    // its Log comes with the core
	Mail           *mail.Server // nil: no e-mail is sent
	StopDelay      time.Duration
	Roles          Roles
	LogLevel       logrus.Level
	// Demo seeds a demo account on the first start and lets webhooks reach the
	// receiver of `humanqa demo` on this machine. It is a flag, not a variable.
	Demo bool
	// given holds the values of the environment, by name, without secrets.
	given map[string]string
}

// ParseConfig checks an environment such as os.Environ gives. An empty value is
// an unset one.
func ParseConfig(environ []string) (Config, error) {
	vars := env.ToMap(environ)
	for name, value := range vars {
		if value == "" {
			delete(vars, name)
		}
	}
	if err := refuseUnknown(vars); err != nil {
		return Config{}, err
	}
	var e environment
	if err := env.ParseWithOptions(&e, env.Options{Environment: vars, FuncMap: readers}); err != nil {
		return Config{}, unreadable(err, vars)
	}
	c, err := e.config()
	_, c.AdminAddrGiven = vars["HUMANQA_ADMIN_ADDR"]
	_, c.VoiceAddrGiven = vars["HUMANQA_VOICE_ADDR"]
	c.given = map[string]string{}
	for _, s := range Settings() {
		if value, given := vars[s.Name]; given {
			c.given[s.Name] = unsecret(s.Name, value)
		}
	}
	return c, err
}

// LogAddresses says that the log names the addresses of clients.
func (c Config) LogAddresses() bool { return c.LogClientAddress == "on" }

func refuseUnknown(vars map[string]string) error {
	known := map[string]bool{}
	for _, s := range Settings() {
		known[s.Name] = true
	}
	var unknown []string
	for name := range vars {
		if strings.HasPrefix(name, "HUMANQA_") && !strings.HasPrefix(name, testPrefix) && !known[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	next := "unset it, or see humanqa serve --help for the known ones"
	if strings.HasPrefix(vars["HUMANQA_PORT"], "tcp://") {
		next = "Kubernetes adds it for a Service named humanqa, so set enableServiceLinks: false in the pod's spec"
	}
	return fmt.Errorf("unknown setting %s: %s", strings.Join(unknown, ", "), next)
}

// readers read the settings that are no plain words.
var readers = map[reflect.Type]env.ParserFunc{
	reflect.TypeFor[guard.Allow]():     func(text string) (any, error) { return guard.ParseAllow(text) },
	reflect.TypeFor[guard.Targets]():   func(text string) (any, error) { return guard.ParseTargets(text) },
	reflect.TypeFor[hosting.Domains](): func(text string) (any, error) { return hosting.Parse(text) },
	reflect.TypeFor[[]string]():        func(text string) (any, error) { return parseIPs(text) },
}

// unreadable names the setting that cannot be read; of a number in our own words.
func unreadable(err error, vars map[string]string) error {
	wrong, _ := errors.AsType[env.ParseError](err)
	field, found := reflect.TypeFor[environment]().FieldByName(wrong.Name)
	if !found {
		return fmt.Errorf("read the environment: %w", err)
	}
	name := field.Tag.Get("env")
	if field.Type.ConvertibleTo(reflect.TypeFor[int64]()) {
		return BadSetting(name, "%q is no whole number that fits", vars[name])
	}
	return BadSetting(name, "%v", wrong.Err)
}

func (e environment) config() (Config, error) {
	c := Config{environment: e, Voice: e.VoiceChoice == "embedded", StopDelay: time.Duration(e.StopDelaySeconds) * time.Second}
	for _, address := range []*string{&c.BaseURL, &c.GitHubURL, &c.GitLabURL} {
		*address = strings.TrimRight(*address, "/")
	}
	if c.AdminAddr == "off" {
		c.AdminAddr = ""
	}
	if host, _, err := net.SplitHostPort(c.Addr); err == nil && c.VoiceAddr == "" {
		c.VoiceAddr = net.JoinHostPort(host, voicePort)
	}
	var err error
	if c.DataDir, err = filepath.Abs(e.DataDir); err != nil {
		return Config{}, BadSetting("HUMANQA_DATA_DIR", "%v", err)
	}
	if c.MasterKeyFile != "" && c.MasterKeyCommand != "" {
		return Config{}, BadSetting("HUMANQA_MASTER_KEY_COMMAND", "gives the keyset, so there is no file of it: unset it or HUMANQA_MASTER_KEY_FILE")
	}
	if c.MasterKeyFile == "" {
		c.MasterKeyFile = filepath.Join(c.DataDir, "master-keyset.json")
	}
	if c.EvidenceURL == "" {
		c.EvidenceURL = blob.Directory(filepath.Join(c.DataDir, "evidence"))
	} else if err := blob.Check(c.EvidenceURL); err != nil {
		return Config{}, BadSetting("HUMANQA_EVIDENCE_URL", "%v", err)
	}
	if c.Roles, err = ParseRoles(e.RoleNames); err != nil {
		return Config{}, err
	}
	if e.SMTPURL != "" {
		c.Mail, err = mail.ParseServer(e.SMTPURL, e.SMTPFrom)
		switch {
		case errors.Is(err, mail.ErrSender):
			return Config{}, BadSetting("HUMANQA_SMTP_FROM", "%v, since HUMANQA_SMTP_URL is set", err)
		case err != nil:
			return Config{}, BadSetting("HUMANQA_SMTP_URL", "%v", err)
		}
	}
	if e.AIChoice == "openai" {
		c.AI = ai.Config{Model: e.AIModel, BaseURL: e.AIBaseURL, Key: e.AIKey}
	}
	if c.LogLevel, err = logrus.ParseLevel(e.LogLevelName); err != nil {
		return Config{}, BadSetting("HUMANQA_LOG_LEVEL", "%q is no level: use debug, info, warn or error", e.LogLevelName)
	}
	return c, c.check()
}

// check looks at the values, and at settings that exclude each other.
func (c Config) check() error {
	if err := cmp.Or(
		checkListen("HUMANQA_ADDR", c.Addr),
		checkListen("HUMANQA_ADMIN_ADDR", c.AdminAddr),
		checkListen("HUMANQA_VOICE_ADDR", c.VoiceAddr),
		checkChoice("HUMANQA_VOICE", c.VoiceChoice, "embedded", "off"),
		checkListen("HUMANQA_POSTGRES_LISTEN", c.PostgresListen),
		checkListen("HUMANQA_EVENTSTORE_LISTEN", c.EventStoreListen),
		checkListen("HUMANQA_EVENTSTORE_LISTEN_INSECURE", c.EventStoreListenInsecure),
		checkLoopback("HUMANQA_EVENTSTORE_LISTEN_INSECURE", c.EventStoreListenInsecure),
		CheckURL("HUMANQA_BASE_URL", c.BaseURL, "http", "https"),
		checkOrigin("HUMANQA_BASE_URL", c.BaseURL),
		CheckURL("HUMANQA_CREDITS_URL", c.CreditsURL, "http", "https"),
		CheckURL("HUMANQA_DATABASE_URL", c.DatabaseURL, "postgres", "postgresql"),
		CheckURL("HUMANQA_DATABASE_DIRECT_URL", c.DatabaseDirectURL, "postgres", "postgresql"),
		CheckURL("HUMANQA_EVENTSTORE_URL", c.EventStoreURL, "esdb", "esdb+discover", "kurrentdb", "kurrentdb+discover"),
		checkCodeHost("HUMANQA_GITHUB_API_URL", c.GitHubURL),
		checkCodeHost("HUMANQA_GITLAB_API_URL", c.GitLabURL),
		checkChoice("HUMANQA_LOG_FORMAT", c.LogFormat, "text", "json"),
		checkChoice("HUMANQA_LOG_CLIENT_ADDRESS", c.LogClientAddress, "on", "off"),
		checkRange("HUMANQA_EVENTSTORE_MAX_APPEND", c.EventStoreMaxAppend, node.MinAppendSize, node.MaxAppendSize),
		checkRange("HUMANQA_DATABASE_CONNECTIONS", c.DatabaseConnections, c.fewestConnections(), 1000),
		checkRange("HUMANQA_CLOSE_EVERY", c.CloseEvery, 1, 1_000_000),
		checkRange("HUMANQA_RECORDING_LIMIT", c.RecordingLimit, 1<<20, 1<<40),
		checkRange("HUMANQA_MAX_CONNECTIONS", c.MaxConnections, 1, 1_000_000),
		checkRange("HUMANQA_STOP_DELAY", c.StopDelaySeconds, 0, 30),
		checkRange("HUMANQA_CHECK_HOURS", c.CheckHours, 0, 8760),
		checkRange("HUMANQA_RATE_LIMIT", c.RateLimit, 1, admit.MaxRateLimit),
		checkChoice("HUMANQA_AI", c.AIChoice, "rules", "openai"),
		c.checkAI(),
		c.checkTLS(),
	); err != nil {
		return err
	}
	if c.EventStoreURL != "" && (c.EventStoreListen != "" || c.EventStoreListenInsecure != "") {
		return BadSetting("HUMANQA_EVENTSTORE_URL",
			"names another log, so there is no embedded node to listen: unset it or HUMANQA_EVENTSTORE_LISTEN*")
	}
	if _, port, err := net.SplitHostPort(c.PostgresListen); err == nil && strings.Trim(port, "0") == "" {
		return BadSetting("HUMANQA_POSTGRES_LISTEN", "needs a port of its own: analysts keep their addresses")
	}
	if c.DatabaseURL == "" && c.DatabaseDirectURL != "" {
		return BadSetting("HUMANQA_DATABASE_DIRECT_URL", "stands beside HUMANQA_DATABASE_URL: set both")
	}
	if c.DatabaseURL != "" && c.PostgresListen != "" {
		return BadSetting("HUMANQA_DATABASE_URL",
			"names another Postgres, so there is no embedded one to listen: unset it or HUMANQA_POSTGRES_LISTEN")
	}
	return nil
}

// voicePort is the default port of voice.
const voicePort = "7882"

func parseIPs(csv string) (ips []string, err error) {
	for part := range strings.SplitSeq(csv, ",") {
		part = strings.TrimSpace(part)
		if net.ParseIP(part) == nil {
			return nil, fmt.Errorf("%q is no IP address", part)
		}
		ips = append(ips, part)
	}
	return ips, nil
}

// BadSetting is the one line that says which variable is wrong, and how.
func BadSetting(name, format string, args ...any) error {
	return fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
}

func checkListen(name, addr string) error {
	if addr == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return BadSetting(name, "%q is no listen address: use one such as 127.0.0.1:8080", addr)
	}
	return nil
}

func checkLoopback(name, addr string) error {
	if addr == "" {
		return nil
	}
	host, _, _ := net.SplitHostPort(addr) // checkListen tells of another error
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return BadSetting(name, "%q is not a loopback address: without TLS only 127.0.0.1 is allowed", addr)
	}
	return nil
}

// CheckURL never quotes the value: it may hold a password.
func CheckURL(name, raw string, schemes ...string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	// A Postgres URL may name its socket in the query and no host at all.
	hostless := err == nil && u.Host == "" && !strings.HasPrefix(u.Scheme, "postgres")
	if err != nil || hostless || u.Opaque != "" || !slices.Contains(schemes, u.Scheme) {
		return BadSetting(name, "is no URL that starts with %s://", strings.Join(schemes, ":// or "))
	}
	return nil
}

// checkOrigin wants no path: every link of the pages leads to the root.
func checkOrigin(name, raw string) error {
	if u, err := url.Parse(raw); err != nil || u.Path != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return BadSetting(name, "must have no path, user or query: have the proxy give the service a host of its own")
	}
	return nil
}

// checkCodeHost wants HTTPS, but for a stub on this machine: a token goes there.
func checkCodeHost(name, raw string) error {
	if err := CheckURL(name, raw, "http", "https"); err != nil {
		return err
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return BadSetting(name, "must have no user, query or fragment")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && (ip == nil || !ip.IsLoopback()) {
		return BadSetting(name, "must start with https://: a token goes there")
	}
	return nil
}

// checkAI requires the settings without which a model cannot be asked. With the rules the
// other settings may stay, so that one variable switches. It never quotes the key.
func (e environment) checkAI() error {
	if e.AIChoice != "openai" {
		return nil
	}
	for _, required := range []struct{ name, value string }{
		{"HUMANQA_AI_MODEL", e.AIModel}, {"HUMANQA_AI_KEY", string(e.AIKey)},
	} {
		if required.value == "" {
			return BadSetting(required.name, "must be set with HUMANQA_AI=openai")
		}
	}
	if strings.ContainsFunc(string(e.AIKey), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return BadSetting("HUMANQA_AI_KEY", "must be printable ASCII without blanks")
	}
	if err := CheckURL("HUMANQA_AI_BASE_URL", e.AIBaseURL, "http", "https"); err != nil {
		return err
	}
	if u, err := url.Parse(e.AIBaseURL); err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return BadSetting("HUMANQA_AI_BASE_URL", "must have no user, query or fragment: the key goes into HUMANQA_AI_KEY")
	}
	return nil
}

// checkTLS requires all settings of TLS or none, and no address that is not served.
func (e environment) checkTLS() error {
	switch {
	case e.TLSCert != "" && e.TLSKey == "":
		return BadSetting("HUMANQA_TLS_KEY", "must be set with HUMANQA_TLS_CERT")
	case e.TLSCert == "" && e.TLSKey != "":
		return BadSetting("HUMANQA_TLS_CERT", "must be set with HUMANQA_TLS_KEY")
	case e.TLSCert != "" && strings.HasPrefix(e.BaseURL, "http://"):
		return BadSetting("HUMANQA_BASE_URL", "must start with https:// where HUMANQA_TLS_CERT is set")
	}
	return nil
}

func checkChoice(name, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return BadSetting(name, "%q is not offered: use %s", value, strings.Join(choices, " or "))
}

func checkRange[N int | int64](name string, value, low, high N) error {
	if value < low || value > high {
		return BadSetting(name, "%d is out of range: use %d to %d", value, low, high)
	}
	return nil
}
