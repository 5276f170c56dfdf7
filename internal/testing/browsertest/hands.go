package browsertest

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"humanqa/internal/testing/must"
)

// Click clicks the first element that the selector finds, once it is visible, and
// waits for the page that a link or a form leads to.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	b.follow("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// follow does a step. If the tab leaves its page by it, it waits until the next one is loaded,
// or turns out to be a file to save.
func (b *Tab) follow(what string, step chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	main := cdp.FrameID(chromedp.FromContext(b.ctx).Target.TargetID)
	var asked atomic.Bool
	var begun bool // only the listener uses it, for one event at a time
	loaded, end := context.WithCancel(ctx)
	defer end()
	must.NoError(b.t, chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *page.EventFrameRequestedNavigation:
			if e.FrameID == main && e.Disposition == page.ClientNavigationDispositionCurrentTab {
				asked.Store(true)
			}
		case *page.EventFrameStartedLoading:
			begun = begun || e.FrameID == main && asked.Load()
		case *page.EventFrameStoppedLoading:
			if e.FrameID == main && begun {
				end()
			}
		}
	}))
	b.do(what, step)
	// The page answers in order. An error is that of a page that is left.
	_, _ = chromedp.Run(ctx, chromedp.Evaluate[int]("0"))
	if !asked.Load() {
		return
	}
	<-loaded.Done()
	if err := ctx.Err(); err != nil {
		b.t.Fatalf("%s: the page that it leads to does not load: %v\n%s", what, err, b.where())
	}
}

// Fill types the text into the selected field.
func (b *Tab) Fill(selector, text string) {
	b.t.Helper()
	b.do("fill "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press sends keys to the element that has the focus.
func (b *Tab) Press(keys string) {
	b.t.Helper()
	b.press(keys, 0)
}

// PressCtrl sends keys while Ctrl is held.
func (b *Tab) PressCtrl(keys string) {
	b.t.Helper()
	b.press(keys, chromedp.ModifierCtrl)
}

// press sends keys as a keyboard does: the text belongs to the key. So a page that
// handles the key itself gets no letter in its field.
func (b *Tab) press(keys string, held chromedp.Modifier) {
	b.t.Helper()
	b.follow("press "+keys, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, r := range keys {
			events := kb.Encode(r)
			for _, e := range events {
				if e.Type == kb.KeyChar && held == 0 {
					events[0].Text, events[0].UnmodifiedText = e.Text, e.UnmodifiedText
				}
			}
			for _, e := range events {
				if e.Type == kb.KeyChar {
					continue
				}
				e.Modifiers |= int64(held)
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *e); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// Keys that Press takes.
const (
	TabKey = kb.Tab
	Enter  = kb.Enter
	Escape = kb.Escape
	Left   = kb.ArrowLeft
	Right  = kb.ArrowRight
	Up     = kb.ArrowUp
	Down   = kb.ArrowDown
)

// Drag presses the mouse at one place of the viewport, in CSS pixels, and lets it
// go at another.
func (b *Tab) Drag(fromX, fromY, toX, toY float64) {
	b.t.Helper()
	b.mouse("drag",
		input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMousePressed, X: fromX, Y: fromY, Buttons: 1, ClickCount: 1},
		input.DispatchMouseEventParams{
			Type: input.DispatchMouseEventTypeMouseMoved, X: (fromX + toX) / 2, Y: (fromY + toY) / 2, Buttons: 1,
		},
		input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: toX, Y: toY, Buttons: 1},
		input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseReleased, X: toX, Y: toY, ClickCount: 1},
	)
}

// Hold is the first half of Click. The second comes at the same place, whatever
// has moved meanwhile.
func (b *Tab) Hold(selector string) (release func()) {
	b.t.Helper()
	at := Eval[[2]float64](b, `(() => {
		const e = document.querySelector(`+strconv.Quote(selector)+`)
		e.scrollIntoView({block: 'nearest', behavior: 'instant'})
		const r = e.getBoundingClientRect()
		return [r.x + r.width / 2, r.y + r.height / 2]
	})()`)
	e := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMousePressed, X: at[0], Y: at[1], Buttons: 1, ClickCount: 1}
	b.mouse("press "+selector, e)
	return func() {
		b.t.Helper()
		e.Type, e.Buttons = input.DispatchMouseEventTypeMouseReleased, 0
		b.mouse("release "+selector, e)
	}
}

// mouse does with its left button what the events say.
func (b *Tab) mouse(what string, events ...input.DispatchMouseEventParams) {
	b.t.Helper()
	b.do(what, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, e := range events {
			e.Button = input.MouseButtonLeft
			if _, err := cdp.Call(ctx, target, input.DispatchMouseEvent, e); err != nil {
				return err
			}
		}
		return nil
	}))
}
