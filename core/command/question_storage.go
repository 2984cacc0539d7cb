package command

// TryStorage has the agent store a little where it keeps backups, read it and remove it.
type TryStorage struct {
	Returns[StorageTried] `json:"-"`
}

// StorageTried is what came of it.
type StorageTried struct {
	Where string `json:"where"` // a folder of the agent's, or a bucket with its store
	// Wrong says in one line what is wrong, and what to do; empty: nothing is.
	Wrong string `json:"wrong,omitempty"`
}

// Route implements Question.
func (TryStorage) Route() Route { return Route{Method: "POST", Path: "/v1/storage/try"} }

// Check implements Question.
func (TryStorage) Check() error { return nil }
