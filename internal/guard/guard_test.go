package guard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"humanqa/domain/identity"
	"humanqa/internal/testing/must"
)

var loopback = Allow{netip.MustParsePrefix("127.0.0.0/8")}

func TestPublicURLAcceptsPublicHosts(t *testing.T) {
	for _, raw := range []string{
		"http://example.com",
		"https://example.com/",
		"HTTPS://EXAMPLE.COM/Path?q=1#frag",
		"https://app.example.com:3000/x",
		"https://example.com./",
		"https://my_app.example.com/",
		"https://bücher.example/",
		"https://xn--bcher-kva.example/",
		"https://例え.jp/パス",
		"https://8.8.8.8/",
		"https://8.8.8.8:8080/",
		"https://[2606:4700:4700::1111]/",
		"https://1.example/",
		"https://0x7f.example.com/",
		"https://localhost.example.com/",
		"https://internal.example.com/",
		"https://example.com/?next=http://user@localhost/%0a",
		"https://example.com:/",
		"https://a--b.example.com/",
	} {
		if err := TargetURL(raw, Targets{}); err != nil {
			t.Errorf("TargetURL(%q) = %v, want nil", raw, err)
		}
	}
}

// refused holds URLs that no endpoint takes, whatever the scheme rules.
var refused = map[string]string{
	"empty":                       "",
	"no scheme":                   "example.com/hook",
	"no scheme, slashes":          "//example.com/hook",
	"opaque":                      "https:example.com",
	"no host":                     "https:///hook",
	"only a port":                 "https://:443/hook",
	"javascript":                  "javascript:alert(1)",
	"file":                        "file:///etc/passwd",
	"data":                        "data:text/html,hi",
	"ftp":                         "ftp://example.com/",
	"gopher":                      "gopher://example.com/",
	"user":                        "https://user@example.com/",
	"user and password":           "https://user:pw@example.com/",
	"empty user":                  "https://@example.com/",
	"user looks like the host":    "https://example.com@127.0.0.1/",
	"newline":                     "https://example.com/\n",
	"carriage return":             "https://example.com/\r\nHost: x",
	"tab in the host":             "https://exam\tple.com/",
	"NUL":                         "https://example.com/\x00",
	"DEL":                         "https://example.com/\x7f",
	"C1 control":                  "https://example.com/\u0085",
	"bidi override":               "https://example.com/\u202egnp.exe",
	"leading blank":               " https://example.com/",
	"blank in the host":           "https://exam ple.com/",
	"no-break space":              "https://example.com/\u00a0",
	"backslash":                   `https://example.com\@127.0.0.1/`,
	"invalid UTF-8":               "https://example.com/\xff",
	"percent in the host":         "https://%6c%6f%63alhost/",
	"percent-encoded letters":     "https://%E2%93%81ocalhost/",
	"port 0":                      "https://example.com:0/",
	"port too large":              "https://example.com:65536/",
	"port not a number":           "https://example.com:https/",
	"localhost":                   "https://localhost/",
	"localhost upper case":        "https://LOCALHOST/",
	"localhost with the root dot": "https://localhost./",
	"two trailing dots":           "https://example.com../",
	"leading dot":                 "https://.example.com/",
	"empty label":                 "https://a..example.com/",
	"below localhost":             "https://app.localhost/",
	"below localhost, root dot":   "https://app.localhost./",
	"circled letters":             "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
	"soft hyphen":                 "https://local\u00adhost/",
	"fullwidth localhost":         "https://ｌｏｃａｌｈｏｓｔ/",
	"single label":                "https://intranet/",
	"metadata":                    "http://metadata/",
	"google metadata":             "http://metadata.google.internal/computeMetadata/v1/",
	"google metadata, short":      "http://metadata.goog/",
	"ec2 instance data":           "http://instance-data.ec2.internal/",
	"mdns":                        "https://printer.local/",
	"internal":                    "https://vault.corp.internal/",
	"home.arpa":                   "https://nas.home.arpa/",
	"home.arpa itself":            "https://home.arpa/",
	"kubernetes service":          "https://kubernetes.default.svc/",
	"cluster.local":               "https://kubernetes.default.svc.cluster.local/",
	"ideographic dots":            "https://app。internal/",
	"loopback":                    "https://127.0.0.1/",
	"loopback, other":             "https://127.255.255.254/",
	"loopback, root dot":          "https://127.0.0.1./",
	"unspecified":                 "https://0.0.0.0/",
	"this network":                "https://0.1.2.3/",
	"private 10":                  "https://10.1.2.3/",
	"private 172.16":              "https://172.16.0.1/",
	"private 172.31":              "https://172.31.255.255/",
	"private 192.168":             "https://192.168.1.1/",
	"shared 100.64":               "https://100.64.0.1/",
	"alibaba metadata":            "http://100.100.100.200/",
	"link-local metadata":         "http://169.254.169.254/latest/meta-data/",
	"azure wire server":           "http://168.63.129.16/",
	"oracle metadata":             "http://192.0.0.192/",
	"multicast":                   "https://224.0.0.1/",
	"broadcast":                   "https://255.255.255.255/",
	"benchmarking":                "https://198.18.0.1/",
	"documentation":               "https://192.0.2.1/",
	"short IPv4":                  "https://127.1/",
	"shorter IPv4":                "https://2130706433/",
	"octal IPv4":                  "https://0177.0.0.1/",
	"hex IPv4":                    "https://0x7f.0.0.1/",
	"hex IPv4, one number":        "https://0x7f000001/",
	"hex last part":               "https://127.0.0.0x1/",
	"hex without digits":          "https://1.2.3.0x/",
	"overlong IPv4":               "https://1.2.3.4.5/",
	"IPv4 part too large":         "https://256.256.256.256/",
	"public IPv4 in octal":        "https://010.8.8.8/",
	"numeric last label":          "https://example.123/",
	"fullwidth digits":            "https://１２７.０.０.１/",
	"ideographic dots in IPv4":    "https://127。0。0。1/",
	"circled digits":              "https://①②⑦.⓪.⓪.①/",
	"IPv6 loopback":               "https://[::1]/",
	"IPv6 unspecified":            "https://[::]/",
	"IPv4 mapped":                 "https://[::ffff:127.0.0.1]/",
	"public IPv4 mapped":          "https://[::ffff:8.8.8.8]/",
	"IPv4 mapped, hex":            "https://[::ffff:7f00:1]/",
	"IPv4 compatible":             "https://[::127.0.0.1]/",
	"NAT64":                       "https://[64:ff9b::7f00:1]/",
	"6to4":                        "https://[2002:7f00:1::]/",
	"teredo":                      "https://[2001:0:7f00:1::]/",
	"unique local":                "https://[fd00:ec2::254]/",
	"link-local":                  "https://[fe80::1]/",
	"link-local with a zone":      "https://[fe80::1%25eth0]/",
	"public with a zone":          "https://[2606:4700:4700::1111%25eth0]/",
	"IPv6 multicast":              "https://[ff02::1]/",
	"IPv6 documentation":          "https://[2001:db8::1]/",
	"bracketed IPv4":              "https://[127.0.0.1]/",
	"bracketed public IPv4":       "https://[8.8.8.8]/",
	"bracketed name":              "https://[example.com]/",
	"IPv6 without brackets":       "https://::1/",
	"hyphen at the start":         "https://-a.example.com/",
	"bad punycode":                "https://xn--a.example.com/",
	"label too long":              "https://" + strings.Repeat("a", 64) + ".example.com/",
	"name too long":               "https://" + strings.Repeat("abcdefg.", 40) + "com/",
	"exclamation mark":            "https://exa!mple.com/",
	"unclosed bracket":            "https://[::1/",
}

func TestRefusedURLs(t *testing.T) {
	for name, raw := range refused {
		t.Run(name, func(t *testing.T) {
			if TargetURL(raw, Targets{}) == nil {
				t.Errorf("TargetURL(%q) was accepted", raw)
			}
			if WebhookURL(raw, nil) == nil {
				t.Errorf("WebhookURL(%q) was accepted", raw)
			}
		})
	}
}

func TestWebhookURL(t *testing.T) {
	v6 := Allow{netip.MustParsePrefix("::1/128")}
	tests := []struct {
		raw   string
		allow Allow
		ok    bool
	}{
		{"https://hooks.example.com/in", nil, true},
		{"https://hooks.example.com:443/in", nil, true},
		{"https://hooks.example.com:8443/in", nil, true},
		{"https://hooks.example.com:8080/in", nil, false},
		{"https://hooks.example.com:22/", nil, false},
		{"https://8.8.8.8:9443/", nil, false},
		{"http://hooks.example.com/in", nil, false},
		{"https://127.0.0.1:39000/in", loopback, true},
		{"https://localhost:39000/in", loopback, true},
		{"https://LOCALHOST.:39000/in", loopback, true},
		{"https://localhost:39000/in", v6, true},
		{"https://[::1]:39000/in", v6, true},
		{"https://[::1]:39000/in", loopback, false},
		{"https://127.0.0.1:39000/in", v6, false},
		{"https://[::ffff:127.0.0.1]:39000/in", loopback, false},
		{"http://127.0.0.1:39000/in", loopback, false},
		{"https://app.localhost:39000/in", loopback, false},
		{"https://10.0.0.1/in", loopback, false},
		{"https://127.1:39000/in", loopback, false},
		{"https://hooks.example.com:8080/in", loopback, false},
	}
	for _, tt := range tests {
		if err := WebhookURL(tt.raw, tt.allow); (err == nil) != tt.ok {
			t.Errorf("WebhookURL(%q, %v) = %v, want ok=%v", tt.raw, tt.allow, err, tt.ok)
		}
	}
}

func TestMessagesAreSentencesForTheClient(t *testing.T) {
	for raw, want := range map[string]string{
		"ftp://example.com":          "must start with http:// or https://",
		"https://a:b@example.com/":   "must not contain a user name or password",
		"https://localhost/":         "the host is private, internal or reserved",
		"https://10.0.0.1/":          "the host is private, internal or reserved",
		"https://127.1/":             "the host is not a valid IPv4 address",
		"https://example.com:70000/": "the port must be between 1 and 65535",
	} {
		err := TargetURL(raw, Targets{})
		if err == nil || err.Error() != want {
			t.Errorf("TargetURL(%q) = %v, want %q", raw, err, want)
		}
	}
}

func TestParseAllow(t *testing.T) {
	got, err := ParseAllow(" 127.0.0.0/8, ::1 ,,10.1.2.3/8")
	must.NoError(t, err)
	want := Allow{
		netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128"),
		netip.MustParsePrefix("10.0.0.0/8"),
	}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("network %d is %v, want %v", i, got[i], want[i])
		}
	}
	if none, err := ParseAllow(""); err != nil || none != nil {
		t.Errorf("the empty list gives %v, %v", none, err)
	}
	for _, bad := range []string{"localhost", "10.0.0.0/33", "10.0.0/8", "::ffff:10.0.0.0/104", "fe80::1%eth0"} {
		if _, err := ParseAllow(bad); err == nil {
			t.Errorf("ParseAllow(%q) was accepted", bad)
		}
	}
}

func TestControl(t *testing.T) {
	tests := []struct {
		network, address string
		allow            Allow
		ok               bool
	}{
		{"tcp4", "8.8.8.8:443", nil, true},
		{"tcp4", "8.8.8.8:8443", nil, true},
		{"tcp4", "8.8.8.8:80", nil, false},
		{"tcp6", "[2606:4700:4700::1111]:443", nil, true},
		{"udp4", "8.8.8.8:443", nil, false},
		{"unix", "/tmp/s", nil, false},
		{"tcp4", "127.0.0.1:443", nil, false},
		{"tcp4", "10.0.0.1:443", nil, false},
		{"tcp4", "169.254.169.254:443", nil, false},
		{"tcp4", "168.63.129.16:443", nil, false},
		{"tcp4", "0.0.0.0:443", nil, false},
		{"tcp6", "[::1]:443", nil, false},
		{"tcp6", "[::ffff:8.8.8.8]:443", nil, false},
		{"tcp6", "[::ffff:127.0.0.1]:443", loopback, false},
		{"tcp6", "[fe80::1%eth0]:443", nil, false},
		{"tcp6", "[64:ff9b::7f00:1]:443", nil, false},
		{"tcp4", "127.0.0.1:39000", loopback, true},
		{"tcp4", "10.0.0.1:443", loopback, false},
		{"tcp4", "nonsense", nil, false},
	}
	for _, tt := range tests {
		err := Control(tt.allow)(tt.network, tt.address, nil)
		if (err == nil) != tt.ok {
			t.Errorf("%s %s with %v: %v, want ok=%v", tt.network, tt.address, tt.allow, err, tt.ok)
		}
		if err != nil && !errors.Is(err, ErrBlocked) {
			t.Errorf("%s %s: %v does not wrap ErrBlocked", tt.network, tt.address, err)
		}
	}
}

func TestControlStopsADialAfterNameResolution(t *testing.T) {
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer func() { _ = ln.Close() }()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	must.NoError(t, err)

	d := net.Dialer{Control: Control(nil)}
	c, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort("localhost", port))
	if err == nil {
		_ = c.Close()
		t.Fatal("a name that resolves to loopback was dialled")
	}
	if !errors.Is(err, ErrBlocked) {
		t.Fatalf("%v does not wrap ErrBlocked", err)
	}

	d.Control = Control(loopback)
	c, err = d.DialContext(context.Background(), "tcp4", ln.Addr().String())
	must.NoError(t, err)
	_ = c.Close()
}

// FuzzWebhookURL holds two promises: nothing panics, and what is accepted has
// a host that is either a public literal or a name that no resolver could take
// for an address.
func FuzzWebhookURL(f *testing.F) {
	for _, raw := range refused {
		f.Add(raw)
	}
	f.Add("https://bücher.example:8443/x?y#z")
	f.Add("https://8.8.8.8/")
	f.Fuzz(func(t *testing.T, raw string) {
		if WebhookURL(raw, nil) != nil {
			return
		}
		if err := TargetURL(raw, Targets{}); err != nil {
			t.Fatalf("%q is a webhook URL but not a public one: %v", raw, err)
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Fatalf("accepted %q: %v", raw, err)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
			if addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || !addr.IsGlobalUnicast() || addr.Zone() != "" || addr.Is4In6() {
				t.Fatalf("accepted the address %v", addr)
			}
			return
		}
		name, ok := identity.Host(u.Hostname())
		if !ok {
			t.Fatalf("accepted %q", raw)
		}
		if last := name[strings.LastIndexByte(name, '.')+1:]; number(last) {
			if _, err := netip.ParseAddr(name); err != nil {
				t.Fatalf("accepted the number %q", name)
			}
		}
	})
}
