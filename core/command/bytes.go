package command

// Bytes is how much is done of the part of a job that is under way. With a Total of 0, that is not known.
type Bytes struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

// bounded makes of what an agent says something that can be shown.
func (b Bytes) bounded() Bytes {
	if b.Total <= 0 {
		return Bytes{}
	}
	return Bytes{min(max(b.Done, 0), b.Total), b.Total}
}
