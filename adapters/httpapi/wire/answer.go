package wire

// Data wraps an answer that is a single object, or a list without pages.
type Data[T any] struct {
	Data T `json:"data"`
}

// DataWithMessage adds a sentence for people, which may change.
type DataWithMessage[T any] struct {
	Message string `json:"message" example:"The environment was changed."`
	Data    T      `json:"data"`
}

// Page is the answer of a list. NextCursor is null on the last page.
type Page[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// Roles is the answer of a list of roles or logins, which has no pages.
type Roles[T any] struct {
	Roles []T `json:"roles"`
}
