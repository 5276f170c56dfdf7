package workbench_test

import (
	"image"
	"image/png"
	"strings"
	"testing"

	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// board is a picture in which every pixel differs from its neighbours, as a file
// on the clipboard.
const board = `(async () => {
	const canvas = new OffscreenCanvas(400, 240), at = canvas.getContext('2d'), all = at.createImageData(400, 240)
	for (let n = 0; n < 400 * 240; n++) all.data.set((n + Math.floor(n / 400)) % 2 ? [0, 0, 0, 255] : [255, 255, 255, 255], 4 * n)
	at.putImageData(all, 0, 0)
	const data = new DataTransfer()
	data.items.add(new File([await canvas.convertToBlob({type: 'image/png'})], 'board.png', {type: 'image/png'}))
	document.activeElement.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}))
	return true
})()`

// What is blurred is not in what is kept, and what is kept is all that is sent.
func TestWhatIsBlurredIsGone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tab, _, checker, c := begun(w)
	paste := func() {
		browsertest.Eval[bool](tab, board)
		tab.Wait(`document.getElementById('annotate').open`)
	}
	paste()
	// place is where a pixel of the picture is on the screen.
	place := func(x, y float64) (float64, float64) {
		box := browsertest.Eval[[]float64](tab, `(({x, y, width, height}) => [x, y, width, height])(document.querySelector('.easel canvas').getBoundingClientRect())`)
		return box[0] + x*box[2]/400, box[1] + y*box[3]/240
	}
	drag := func(fromX, fromY, toX, toY float64) {
		ax, ay := place(fromX, fromY)
		bx, by := place(toX, toY)
		tab.Drag(ax, ay, bx, by)
	}
	contrast := func() int {
		return browsertest.Eval[int](tab, `(() => {
			const {data} = document.querySelector('.easel canvas').getContext('2d').getImageData(110, 70, 80, 60)
			return Math.max(...data) - Math.min(...data.filter((_, n) => n % 4 !== 3))
		})()`)
	}
	tab.Press("3")
	drag(100, 60, 220, 140)
	tab.WaitText("is unreadable now")
	if got := contrast(); got > 140 { // about grey; the fourth value of each pixel is 255
		t.Errorf("the blurred part has a contrast of %d", got)
	}
	tab.Press("u")
	tab.WaitText("The last mark is removed")
	if got := contrast(); got != 255 {
		t.Errorf("what was taken back has a contrast of %d", got)
	}
	tab.Screen(390, 844, false)
	drag(220, 140, 100, 60) // the other way round, on a phone
	tab.WaitText("is unreadable now")
	tab.Press("1")
	drag(300, 200, 240, 160)
	tab.WaitText("An arrow is drawn")
	pagetest.OnEveryScreen(t, tab, "bench-annotate")
	tab.Screen(1280, 900, false)
	tab.Press(browsertest.Escape)
	tab.Wait(`!document.getElementById('annotate').open`) // thrown away

	paste()
	tab.Press("3" + strings.Repeat(browsertest.Left, 5) + browsertest.Enter) // by keys: from 160, 120
	tab.WaitText("The mark begins here")
	tab.Press(browsertest.Escape) // not there
	tab.Press(strings.Repeat(browsertest.Up, 5) + browsertest.Enter + strings.Repeat(browsertest.Down+browsertest.Right, 6) + browsertest.Enter)
	tab.WaitText("is unreadable now") // from 160, 80 to 208, 128
	if n := len(w.draft(checker).Checklist[0].Screenshots()); n != 0 {
		t.Fatalf("%d pictures are there before any is kept", n)
	}
	tab.PressCtrl(browsertest.Enter)
	tab.Wait(`document.querySelectorAll('.kept:not(.sending) img').length === 1`)
	tab.WaitText("All saved")

	var stored []string
	eventually.True(t, "the picture is kept", func() bool {
		stored = w.draft(checker).Checklist[0].Screenshots()
		return len(stored) == 1
	})
	var files int
	w.Must(w.DB.GetContext(t.Context(), &files, `SELECT count(*) FROM http_evidence WHERE job_id = $1`, c.JobID))
	if files != 1 {
		t.Errorf("%d files were sent", files)
	}
	path, _, err := w.Evidence.Path(t.Context(), c.AccountID, stored[0])
	w.Must(err)
	kept, err := png.Decode(strings.NewReader(w.Call(guest{}, "GET", path, nil).Body))
	w.Must(err)
	if size := kept.Bounds().Size(); size != image.Pt(400, 240) {
		t.Fatalf("the picture is %v", size)
	}
	inside := image.Rect(160, 80, 208, 128)
	grey := func(x, y int) int {
		r, _, _, _ := kept.At(x, y).RGBA()
		return int(r >> 8)
	}
	for y := range 240 {
		for x := range 399 {
			step := grey(x, y) - grey(x+1, y)
			at := image.Pt(x, y)
			if at.In(inside) && at.Add(image.Pt(1, 0)).In(inside) {
				if step > 24 || step < -24 {
					t.Fatalf("at %v, which is blurred, a pixel differs from the next by %d", at, step)
				}
			} else if !at.In(inside.Inset(-2)) && step != 255 && step != -255 {
				t.Fatalf("at %v, which is not blurred, a pixel differs from the next by %d", at, step)
			}
		}
	}
}
