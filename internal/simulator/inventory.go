package simulator

import (
	"net/http"
	"strconv"
)

var stock = map[string]int{"mug": 12, "tee": 40, "cap": 0}

// Inventory answers how many pieces of the path's {sku} there are, as a bare JSON
// number.
func Inventory() *Dependency {
	return newDependency(healthy, func(w http.ResponseWriter, r *http.Request, _ int) {
		pieces, ok := stock[r.PathValue("sku")]
		if !ok {
			refuse(w, http.StatusNotFound, "unknown sku")
			return
		}
		writeJSON(w, strconv.AppendInt(nil, int64(pieces), 10))
	})
}
