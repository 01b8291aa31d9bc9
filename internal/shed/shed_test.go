package shed

import (
	"errors"
	"strings"
	"testing"
)

func TestNewestIsShedWhenThereIsNoRoom(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	errDown := errors.New("down")
	err = s.Do(func() error {
		return s.Do(func() error {
			if err := s.Do(func() error { t.Error("ran without room"); return nil }); err != ErrBusy {
				t.Errorf("third: %v, want %v", err, ErrBusy)
			}
			if got, want := s.Snapshot(), (Snapshot{Permits: 2, InUse: 2, Rejected: 1}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			return errDown
		})
	})
	if err != errDown {
		t.Errorf("Do = %v, want the work's own error", err)
	}
	if got, want := s.Snapshot(), (Snapshot{Permits: 2, Rejected: 1}); got != want {
		t.Errorf("afterwards %+v, want %+v", got, want)
	}
}

func TestPanicGivesItsPlaceBack(t *testing.T) {
	s, err := New(Config{Permits: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v, want boom", p)
				}
			}()
			s.Do(func() error { panic("boom") })
		}()
	}
	if got, want := s.Snapshot(), (Snapshot{Permits: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNewNamesTheFieldItCannotWorkWith(t *testing.T) {
	if _, err := New(Config{Permits: -1}); err == nil || !strings.Contains(err.Error(), "Permits") {
		t.Errorf("Permits negative: %v, want an error that names it", err)
	}
}
