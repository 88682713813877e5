package browser_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	browser "github.com/deckhouse/system-s3/tests/page"
)

func addProbe(ctx context.Context) error {
	_, err := page.AddScriptToEvaluateOnNewDocument(probe).Do(ctx)
	return err
}

var (
	desk  = browser.Look{Width: 1280, Height: 900}
	phone = browser.Look{Width: 360, Height: 740}
)

// contrast is what WCAG 2.2 asks of normal text on level AA; large text could do with less and does not get it.
const contrast = 4.5

// TestPageInEveryLook: no scrolling sideways, no pale text, no breach of the policy, in every cluster.
func TestPageInEveryLook(t *testing.T) {
	s, b := serve(t), open(t)
	for _, cluster := range []string{"well", "trouble", "empty", "hostile", "many"} {
		s.become(t, cluster)
		for _, width := range []int64{360, 768, 1280} {
			for _, dark := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/dark=%t", cluster, width, dark), func(t *testing.T) {
					visit(t, b, s, "", browser.Look{Width: width, Height: 800, Dark: dark})
					require.NoError(t, b.Run(chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => (d.open = true))`, nil)))
					require.Empty(t, ask[[]string](t, b, "probe.wide()"), "nothing sticks out")
					type paleness struct {
						Checked int
						Seen    []string
					}
					got := ask[paleness](t, b, fmt.Sprintf("probe.pale(%v)", contrast))
					require.Greater(t, got.Checked, 30)
					require.Empty(t, got.Seen, "every text can be read")
					require.Empty(t, b.Complaints())
				})
			}
		}
	}
}

func TestScreenReaderFindsItsWay(t *testing.T) {
	s, b := serve(t), open(t)
	for _, cluster := range []string{"well", "trouble", "empty"} {
		s.become(t, cluster)
		visit(t, b, s, "", desk)
		got := ask[struct {
			Language                                                      string
			Headings                                                      []int
			Mains, Banners, UnnamedNavs, Live, Tables, Captions, Headless int
			IDs                                                           []string
		}](t, b, "probe.structure()")
		require.Equal(t, "en", got.Language)
		require.Equal(t, 1, got.Headings[0], "the state is the first heading")
		for i, level := range got.Headings[1:] {
			require.Greater(t, level, 1, "there is one h1")
			require.LessOrEqual(t, level, got.Headings[i]+1, "no level is left out")
		}
		require.Equal(t, []int{1, 1, 0, 1}, []int{got.Mains, got.Banners, got.UnnamedNavs, got.Live})
		require.Equal(t, got.Tables, got.Captions, "each table says what it is of")
		require.Zero(t, got.Headless, "each heading cell says what it heads")
		require.Empty(t, got.IDs, "ids are unique")
	}
	s.become(t, "trouble")
	for _, look := range []browser.Look{desk, phone} {
		visit(t, b, s, "", look)
		require.Empty(t, unnamed(t, b), "everything has a name")
		roles := rolesOf(t, b)
		for role, least := range map[string]int{"table": 4, "row": 20, "columnheader": 12, "progressbar": 4, "searchbox": 1, "banner": 1, "main": 1} {
			require.GreaterOrEqual(t, roles[role], least, "%s at %d px", role, look.Width)
		}
	}
}

func TestKeyboardReachesEverything(t *testing.T) {
	s, b := serve(t), open(t)
	s.become(t, "trouble")
	for _, look := range []browser.Look{desk, phone} {
		visit(t, b, s, "", look)
		count := ask[int](t, b, "probe.interactive()")
		require.Greater(t, count, 12)
		reached := map[int]string{}
		for range count {
			require.NoError(t, b.Run(chromedp.KeyEvent(kb.Tab)))
			got := ask[*struct {
				Number  int
				Name    string
				Visible bool
			}](t, b, "probe.focused()")
			require.NotNil(t, got)
			require.True(t, got.Visible, "one sees where the focus is: %s", got.Name)
			reached[got.Number] = got.Name
		}
		require.Len(t, reached, count, "Tab reaches each once: %v", reached)
		require.Equal(t, "A Skip to the content", reached[0])
	}
}

// TestPageRenewsItself: what changed is told, and nothing that the person did is lost.
func TestPageRenewsItself(t *testing.T) {
	s, b := serve(t), open(t)
	visit(t, b, s, "", desk)
	require.NoError(t, b.Run(
		chromedp.SetAttributeValue("details", "open", "", chromedp.ByQuery),
		chromedp.SendKeys("input[name=q]", "log", chromedp.ByQuery),
		chromedp.Evaluate(`window.kept = [document.querySelector("h1"), document.querySelector("input[name=q]"), document.querySelector("#buckets")];
			window.scrollTo(0, 300); window.changes = 0;
			new MutationObserver((all) => (window.changes += all.length)).observe(document.getElementById("main"), {subtree: true, childList: true, characterData: true, attributes: true})`, nil),
	))
	top := ask[float64](t, b, "scrollY")
	require.Equal(t, "All is well", ask[string](t, b, `document.querySelector("h1").textContent`))

	renew(t, b)
	require.Zero(t, ask[int](t, b, "changes"), "nothing changed, so nothing is touched")

	s.become(t, "trouble")
	renew(t, b)
	await(t, b, `document.querySelector("h1").textContent === "The store works and needs attention"`)
	require.Equal(t, "The store works and needs attention · system-s3", ask[string](t, b, "document.title"))
	require.True(t, ask[bool](t, b, `kept[0] === document.querySelector("h1")`), "the same element says something else: screen readers read the change")
	require.Equal(t, "log", ask[string](t, b, `document.querySelector("input[name=q]").value`), "what was typed stays")
	require.Equal(t, "q", ask[string](t, b, "document.activeElement.name"), "the focus stays")
	require.Greater(t, top, 0.0)
	require.Empty(t, b.Complaints())
}

func TestPauseAndSilence(t *testing.T) {
	s, b := serve(t), open(t)
	visit(t, b, s, "", desk)
	require.NoError(t, b.Run(chromedp.Focus("#pause"), chromedp.KeyEvent(kb.Enter)))
	require.Equal(t, "true", ask[string](t, b, `document.getElementById("pause").getAttribute("aria-pressed")`))
	s.become(t, "trouble")
	renew(t, b)
	require.Equal(t, "All is well", ask[string](t, b, `document.querySelector("h1").textContent`), "it was told to wait")
	require.NoError(t, b.Run(chromedp.KeyEvent(kb.Enter)))
	await(t, b, `document.querySelector("h1").textContent !== "All is well"`)

	require.True(t, ask[bool](t, b, `document.getElementById("stale").hidden`))
	require.NoError(t, s.process.Kill())
	renew(t, b)
	await(t, b, `!document.getElementById("stale").hidden`)
	require.Equal(t, "The store works and needs attention", ask[string](t, b, `document.querySelector("h1").textContent`), "what was known stays readable")
}

func TestFindingABucketAmongThousands(t *testing.T) {
	s, b := serve(t), open(t)
	s.become(t, "many")
	visit(t, b, s, "", desk)
	require.NoError(t, b.Run(chromedp.SendKeys("input[name=q]", "bucket-49"+kb.Enter, chromedp.ByQuery), chromedp.WaitReady(".buckets")))
	await(t, b, `document.querySelector(".buckets caption").textContent === "1 to 50 of 100 found among 5005 buckets"`)
	require.NoError(t, b.Run(chromedp.Focus("a[rel=next]"), chromedp.KeyEvent(kb.Enter)))
	await(t, b, `document.querySelector(".buckets caption").textContent === "51 to 100 of 100 found among 5005 buckets"`)
	require.Empty(t, b.Complaints())
}

// TestNobodySeesItUnasked: without a token the browser asks for one, and shows nothing with a wrong one.
func TestNobodySeesItUnasked(t *testing.T) {
	s, b := serve(t), open(t)
	for _, address := range []string{s.address, browser.Signed(s.address, "nonsense")} {
		answer, err := chromedp.RunResponse(b.Tab(), chromedp.Navigate(address))
		if err == nil {
			require.EqualValues(t, 401, answer.Status)
		}
		require.False(t, ask[bool](t, b, `!!document.getElementById("main")`))
	}
}

// renew makes the page look again now, as it does when its window is brought to the front.
func renew(t *testing.T, b *browser.Browser) {
	t.Helper()
	const settled = `(async () => {
		const real = window.fetch;
		let asked = null, read = null;
		window.fetch = (...all) => (asked = real(...all).then((answer) => {
			const text = answer.text.bind(answer);
			answer.text = () => (read = text());
			return answer;
		}));
		document.dispatchEvent(new Event("visibilitychange"));
		window.fetch = real;
		await asked?.catch(() => null);
		await Promise.resolve();
		await read;
		await new Promise(requestAnimationFrame);
		return true;
	})()`
	var done bool
	require.NoError(t, b.Run(chromedp.Evaluate(settled, &done, chromedp.EvalAsValue, awaited)))
}

func await(t *testing.T, b *browser.Browser, condition string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var holds bool // an error means that the page is being replaced
		return b.Run(chromedp.Evaluate("Boolean("+condition+")", &holds)) == nil && holds
	}, 10*time.Second, 50*time.Millisecond, condition)
}
