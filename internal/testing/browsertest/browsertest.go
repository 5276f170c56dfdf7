// Package browsertest lets tests inspect pages in a real browser: Debian's chromium,
// one process a package, and its own profile (cookies, storage) for each tab. A
// complaint of the browser fails the test: an error on the console, or a breach of the
// content security policy.
//
// A package that uses it says so in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(browsertest.Main(m.Run)) }
//
// Without a browser the tests are skipped, and under CI=true they fail. make test
// installs one.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	browserdomain "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// patience bounds every single step. On a machine that runs twenty tests at once axe takes
// more than a minute for the largest page.
const patience = eventually.Patience

// ShotsEnv names a folder; pictures that tests take are written there.
const ShotsEnv = "HUMANQA_TEST_SHOTS"

// Tab is one tab with a profile of its own. Its steps fail the test.
type Tab struct {
	t   testing.TB
	ctx context.Context

	opened []target.ID // its windows

	heard   *complaints
	allowed []string
}

// complaints are those of the browser that no test has reported yet.
type complaints struct {
	mu   sync.Mutex
	said []string
}

// New opens a tab.
func New(t testing.TB) *Tab {
	t.Helper()
	if shell.path() == "" {
		return open(t, &full)
	}
	return open(t, &shell)
}

// NewNotified opens a tab whose pages may show notifications, once they ask.
func NewNotified(t testing.TB) *Tab {
	t.Helper()
	tab := open(t, &full)
	tab.allowNotifications()
	return tab
}

func open(t testing.TB, in *browser) *Tab {
	t.Helper()
	if in.path() == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no browser")
		}
		t.Skip("there is no browser: make test installs one")
	}
	first, err := in.start()
	must.NoError(t, err)
	ctx, end := chromedp.NewContext(first, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	tab := &Tab{t: t, ctx: ctx, heard: &complaints{}}
	must.NoError(t, chromedp.Do(ctx))
	must.NoError(t, chromedp.Listen(ctx, tab.heard.hear))
	t.Cleanup(tab.reports)
	return tab
}

// In is the tab for a subtest, which also reports the complaints that come meanwhile.
func (b *Tab) In(t testing.TB) *Tab {
	t.Helper()
	tab := &Tab{t: t, ctx: b.ctx, heard: b.heard}
	t.Cleanup(tab.reports)
	return tab
}

func (c *complaints) hear(ev any) {
	var problem string
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			problem = fmt.Sprintf("console: %v", e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			problem = fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	}
	if problem != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, problem)
	}
}

func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := c.said
	c.said = nil
	return said
}

func (b *Tab) reports() {
	for _, said := range b.heard.take() {
		if !slices.ContainsFunc(b.allowed, func(part string) bool { return strings.Contains(said, part) }) {
			b.t.Errorf("the browser complains: %s", said)
		}
	}
}

// Allow passes over complaints with this text: the browser reports a refusal that the
// test expects as an error.
func (b *Tab) Allow(text string) {
	b.allowed = append(b.allowed, text)
}

func (b *Tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	err := chromedp.Do(ctx, steps...)
	// The page replaced the element between the look for it and the step, which has not begun.
	for err != nil && ctx.Err() == nil && strings.Contains(err.Error(), replacedNode) {
		err = chromedp.Do(ctx, steps...)
	}
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.where())
	}
}

// replacedNode is Chromium's error for an element that is gone.
const replacedNode = "Could not find node with given id"

// where describes the page for a failure.
func (b *Tab) where() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body?.innerText ?? "").slice(0, 1500)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// Open loads a page.
func (b *Tab) Open(url string) {
	b.t.Helper()
	b.do("open "+url, chromedp.Navigate(url))
}

// Opened is the next window that the tab's page opened, once it exists: a popup, or a
// floating window.
func (b *Tab) Opened() *Tab {
	b.t.Helper()
	end := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		own := chromedp.FromContext(b.ctx).Target.TargetID
		all, err := chromedp.Targets(b.ctx)
		if n := slices.IndexFunc(all,
			func(i *target.Info) bool { return i.OpenerID == own && !slices.Contains(b.opened, i.TargetID) }); n >= 0 {
			ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithTargetID(all[n].TargetID))
			b.t.Cleanup(stop)
			if err := chromedp.Do(ctx); err != nil { // without a deadline, since a tab ends with its context
				b.t.Fatal(err)
			}
			b.opened = append(b.opened, all[n].TargetID)
			return &Tab{t: b.t, ctx: ctx, heard: b.heard}
		}
		if time.Now().After(end) {
			b.t.Fatalf("no window opens: %v\n%s", err, b.where())
		}
		<-tick.C
	}
}

// Eval runs an expression in the tab.
func Eval[T any](b *Tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("evaluate %s: %v\n%s", expression, err, b.where())
	}
	return v
}

// Wait returns once the expression is true; the tab may change pages meanwhile.
func (b *Tab) Wait(expression string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		cancel()
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("wait for %s: %v\n%s", expression, err, b.where())
		}
		<-tick.C
	}
}

// WaitText returns once the page shows the text.
func (b *Tab) WaitText(text string) {
	b.t.Helper()
	b.Wait(fmt.Sprintf("document.readyState === 'complete' && document.body.innerText.includes(%q)", text))
}

// Screen sets the viewport in CSS pixels, and the colour scheme.
func (b *Tab) Screen(wide, high int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do("set the screen", chromedp.EmulateViewport(wide, high), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// Zone sets the time zone, by its name in the database of zones.
func (b *Tab) Zone(name string) {
	b.t.Helper()
	b.do("set the time zone", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
		return err
	}))
}

// Print shows the page as it would be printed.
func (b *Tab) Print() {
	b.t.Helper()
	b.do("print", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	}))
}

// NoScript turns scripts off for the pages that are opened next.
func (b *Tab) NoScript() {
	b.t.Helper()
	b.do("turn scripts off", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// Passkeys gives the tab a device that makes and uses passkeys without asking.
func (b *Tab) Passkeys() {
	b.t.Helper()
	b.do("add an authenticator", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
			Options: &webauthn.VirtualAuthenticatorOptions{
				Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
				HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
			},
		})
		return err
	}))
}

func (b *Tab) allowNotifications() {
	b.t.Helper()
	b.do("allow notifications", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		in, err := cdp.Call(ctx, tab, target.GetTargetInfo, target.GetTargetInfoParams{})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, tab, browserdomain.SetPermission, browserdomain.SetPermissionParams{
			Permission: &browserdomain.PermissionDescriptor{Name: "notifications"}, Setting: browserdomain.PermissionSettingGranted,
			BrowserContextID: in.TargetInfo.BrowserContextID,
		})
		return err
	}))
}

// Cookie gives the tab a cookie, as a sign-in would.
func (b *Tab) Cookie(url, name, value string) {
	b.t.Helper()
	b.do("set a cookie", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: url, Path: "/",
			Secure: new(true), HTTPOnly: new(true)})
		return err
	}))
}

// Shot writes a picture of the whole page, where HUMANQA_TEST_SHOTS names a
// folder for it.
func (b *Tab) Shot(name string) {
	b.t.Helper()
	dir := os.Getenv(ShotsEnv)
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	}
	if err != nil {
		b.t.Errorf("picture %s: %v", name, err)
	}
}
