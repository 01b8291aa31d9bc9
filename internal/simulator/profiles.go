package simulator

import "net/http"

var profiles = map[string]string{
	"ada":   `{"id":"ada","name":"Ada Lovelace"}`,
	"grace": `{"id":"grace","name":"Grace Hopper"}`,
	"linus": `{"id":"linus","name":"Linus Torvalds"}`,
}

// Profiles answers the profile of the path's {id}.
func Profiles() *Dependency {
	return newDependency(healthy, func(w http.ResponseWriter, r *http.Request, _ int) {
		profile, ok := profiles[r.PathValue("id")]
		if !ok {
			refuse(w, http.StatusNotFound, "unknown id")
			return
		}
		writeJSON(w, []byte(profile))
	})
}
