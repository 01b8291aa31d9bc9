package breaker

import (
	"encoding/json"
	"testing"
	"time"
)

func TestSnapshotsAsJSON(t *testing.T) {
	for _, tt := range []struct {
		s    Snapshot
		want string
	}{
		{Snapshot{State: Closed, Failures: 2, OpensAfter: 3},
			`{"state":"closed","probe_due":false,"consecutive_failures":2,"opens_after":3,"retry_after_ms":0,"transitions":0,"rejected":0}`},
		{Snapshot{State: Open, ProbeDue: true, OpensAfter: 3, Transitions: 1, Rejected: 7},
			`{"state":"open","probe_due":true,"consecutive_failures":0,"opens_after":3,"retry_after_ms":0,"transitions":1,"rejected":7}`},
		{Snapshot{State: Open, OpensAfter: 3, RetryAfter: time.Second + 1},
			`{"state":"open","probe_due":false,"consecutive_failures":0,"opens_after":3,"retry_after_ms":1001,"transitions":0,"rejected":0}`},
		{Snapshot{State: HalfOpen, MinCalls: 20, FailureRatio: 0.5, Calls: 4, Failures: 1},
			`{"state":"half_open","probe_due":false,"failures":1,"calls":4,"min_calls":20,"failure_ratio":0.5,"retry_after_ms":0,"transitions":0,"rejected":0}`},
	} {
		got, err := json.Marshal(tt.s)
		if err != nil || string(got) != tt.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
		}
	}
}
