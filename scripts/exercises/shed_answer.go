package exercises

import (
	"time"

	"example.com/storefront/internal/shed"
)

// ReportQueueAnswer lets nobody wait for longer than leaves time for the work. Ten
// in the queue are through in half a second.
func ReportQueueAnswer() shed.Config {
	return shed.Config{
		Permits: 2,
		Policy:  shed.Wait,
		Queue:   10,
		MaxWait: 800 * time.Millisecond,
	}
}
