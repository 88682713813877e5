// Package browser opens the status page in a real browser, Debian's Chromium without a screen.
package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Chromium is where Debian's package has it; `make tools` installs it.
const Chromium = "/usr/bin/chromium"

// Browser is a running Chromium with one tab.
type Browser struct {
	tab context.Context //nolint:containedctx // chromedp keeps the browser in the context

	mu         sync.Mutex
	complaints []string
}

// Open starts a browser, which ends with the returned function.
func Open(ctx context.Context) (*Browser, context.CancelFunc, error) {
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(Chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.IgnoreCertErrors,
		// Nothing outside of this machine is needed, and every attempt would wait.
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
	})
	allocated, stop := chromedp.NewExecAllocator(ctx, options...)
	tab, leave := chromedp.NewContext(allocated)
	b := &Browser{tab: tab}
	chromedp.ListenTarget(tab, b.hear)
	if err := chromedp.Run(tab, log.Enable(), runtime.Enable()); err != nil {
		leave()
		stop()
		return nil, nil, fmt.Errorf("start the browser: %w", err)
	}
	return b, func() { leave(); stop() }, nil
}

// hear keeps errors of scripts and breaches of the page's policy.
func (b *Browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Error())
	}
}

// Complaints are what the browser had to say about the page since it was asked last.
func (b *Browser) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	told := b.complaints
	b.complaints = nil
	return told
}

// Run does the actions in the tab.
func (b *Browser) Run(actions ...chromedp.Action) error {
	return chromedp.Run(b.tab, actions...) //nolint:wrapcheck // it names the action
}

// Look is how the page is looked at.
type Look struct {
	Width, Height int64
	Dark          bool
}

// As makes the browser look so.
func As(l Look) chromedp.Action {
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	return chromedp.Tasks{
		emulation.SetDeviceMetricsOverride(l.Width, l.Height, 1, l.Width < 600), //nolint:mnd // a telephone
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}),
	}
}

// Signed is the address with a token as the password, as a person would type it.
func Signed(address, token string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	return scheme + "://anybody:" + token + "@" + rest
}

// Tab is the context of the tab.
func (b *Browser) Tab() context.Context { return b.tab }
