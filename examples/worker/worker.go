// unstuck work --exec --targets --source shop --workers 4 --drain -- ./worker https://shop.example
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

type object map[string]any

type listing struct {
	Items []struct{ Name, URL string }
	Next  *string
}

type reply struct {
	Planner, Ended, Stop bool
	Targets              []struct {
		ID, URL, Next string
		Page          int
	}
}

func read[T any](response *http.Response, err error) (content T, _ error) {
	if err != nil {
		return content, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &content)
	}
	return content, err
}

// call returns false for a target that another worker has. Any other error ends the worker.
func call(path string, body object) (reply, bool) {
	content, _ := json.Marshal(body)
	request, _ := http.NewRequest("POST", os.Getenv("UNSTUCK_URL")+path, bytes.NewReader(content))
	request.Header.Set("Authorization", "Bearer "+os.Getenv("UNSTUCK_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	answer, err := read[reply](http.DefaultClient.Do(request))
	if err != nil && !strings.Contains(err.Error(), `"LEASE_LOST"`) {
		log.Fatal(err)
	}
	return answer, err == nil
}

func savePages(stopping context.Context, path string, page int, url *string) {
	for held := true; held && url != nil; {
		if stopping.Err() != nil {
			call(path+"/release", object{})
			return
		}
		found, err := read[listing](http.Get(*url))
		if err != nil {
			call(path+"/fail", object{"error": err.Error()})
			return
		}
		items := []object{}
		for _, item := range found.Items {
			items = append(items, object{"url": item.URL, "data": object{"name": item.Name}})
		}
		page, url = page+1, found.Next
		_, held = call(path+"/checkpoint", object{"page": page, "items": items, "next": url})
	}
}

func main() {
	stopping, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	if turn, _ := call("/planning", object{}); turn.Planner {
		categories, err := read[listing](http.Get(os.Args[1] + "/categories"))
		if err != nil {
			log.Fatal(err)
		}
		targets := []object{}
		for _, one := range categories.Items {
			targets = append(targets, object{"key": one.Name, "url": one.URL})
		}
		call("/targets", object{"targets": targets})
		call("/targets/planned", object{})
	}
	for {
		claimed, _ := call("/claim", object{"waitMs": 20000, "single": true})
		if claimed.Ended || claimed.Stop {
			return
		}
		for _, one := range claimed.Targets {
			url := one.Next
			if url == "" {
				url = one.URL
			}
			savePages(stopping, "/targets/"+one.ID, one.Page, &url)
		}
	}
}
