package storefront

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowShedsTheThird(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		first, second := w.begin(w.Context(), "/slow"), w.begin(w.Context(), "/slow")
		third := w.get("/slow")
		w.want(third, "503 busy")
		if waited := time.Since(w.start); waited != 0 || third.header.Get("Retry-After") != "1" {
			w.Errorf("refused after %v with Retry-After %q, want at once with 1", waited, third.header.Get("Retry-After"))
		}
		w.want(w.get("/healthz"), "200 ok")
		w.want(w.get("/readyz"), "200 ready")
		w.want(<-first, "200 done")
		w.want(<-second, "200 done")
		if took := time.Since(w.start); took != 2*time.Second {
			w.Errorf("worked for %v, want 2s", took)
		}
		w.want(w.get("/slow"), "200 done")
	})
}

func TestSlowHangUpFreesThePlaceAtOnce(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		ctx, hangUp := context.WithCancel(w.Context())
		w.begin(ctx, "/slow")
		w.begin(ctx, "/slow")
		time.Sleep(time.Second)
		hangUp()
		synctest.Wait()
		if got := w.service.shedder.Snapshot().InUse; got != 0 {
			w.Errorf("%d places in use after the hang-ups, want 0", got)
		}
		w.want(w.get("/slow"), "200 done")
	})
}

func TestLongWorkStillGetsItsAnswer(t *testing.T) {
	inBubble(t, Config{SlowWork: time.Hour}, func(w *world) {
		w.want(w.get("/slow"), "200 done")
	})
}
