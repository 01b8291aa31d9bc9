package exercises

import (
	"time"

	"example.com/storefront/internal/breaker"
)

// CatalogueBreaker is the breaker of a catalogue that gets ten calls a second. It
// opens when half of the calls fail, whatever their order. It stays closed when one
// of ten does, and when the first three calls of a morning do: that is bad luck.
//
// As it stands it never sees the catalogue that fails every second call.
func CatalogueBreaker() breaker.Config {
	return breaker.Config{
		Failures: 3,
		Cooldown: 5 * time.Second,
	}
}
