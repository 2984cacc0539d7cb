package serve

import "net/http"

// Work is what a route does, and the successful answers that it documents. The functions that make one document what
// its handler returns.
type Work struct {
	List    ListKind
	Handle  Handler
	Answers []Documented
	CSV     bool // WithCSV has made it
}

// Handler runs when every check of the route has passed. The answer that comes with an error is not looked at.
type Handler func(r *Request) (Answer, error)

// Documented is one successful answer of a route. Body is a zero value of the type that is sent; nil means no body, and
// ContentType is application/json where empty. Meaning says when the route answers so, where it has several answers.
type Documented struct {
	Status      int
	Body        any
	ContentType string
	Meaning     string
	Location    string // meaning of the header Location; empty where the answer has none
	Range       string // likewise of Range
}

// OK is work that answers 200.
func OK[T any](do func(*Request) (T, error)) Work { return answers(http.StatusOK, do) }

// Created is work that answers 201.
func Created[T any](do func(*Request) (T, error)) Work { return answers(http.StatusCreated, do) }

// Accepted is work that answers 202.
func Accepted[T any](do func(*Request) (T, error)) Work { return answers(http.StatusAccepted, do) }

func answers[T any](status int, do func(*Request) (T, error)) Work {
	return Work{
		Answers: []Documented{{Status: status, Body: *new(T)}},
		Handle: func(r *Request) (Answer, error) {
			body, err := do(r)
			return Answer{Status: status, Body: body}, err
		},
	}
}

// Empty is work whose answer has no body.
func Empty(do func(*Request) error) Work {
	return Work{
		Answers: []Documented{{Status: http.StatusNoContent}},
		Handle:  func(r *Request) (Answer, error) { return Answer{Status: http.StatusNoContent}, do(r) },
	}
}

// DoneOrPending is work that may outlast its request: 200 where it is done, and else 202. The texts say what the answers mean.
func DoneOrPending[T any](done, pending string, do func(*Request) (body T, isDone bool, err error)) Work {
	return Work{
		Answers: []Documented{
			{Status: http.StatusOK, Body: *new(T), Meaning: done}, {Status: http.StatusAccepted, Body: *new(T), Meaning: pending},
		},
		Handle: func(r *Request) (Answer, error) {
			body, isDone, err := do(r)
			if isDone {
				return Answer{Status: http.StatusOK, Body: body}, err
			}
			return Answer{Status: http.StatusAccepted, Body: body}, err
		},
	}
}
