/* Search on pages that were opened from the disk: browsers start no workers there, so the search runs in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = (this.inside = frame.contentWindow)
      this.ready = new Promise((resolve) => (this.begin = resolve))
      inside.document.open()
      inside.document.write("<!doctype html><title>search</title>")
      inside.document.close()
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = async (...urls) => {
        for (const each of urls) await this.load(each)
      }
      this.load(url).then(this.begin)
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = reject
        this.inside.document.head.append(script)
      })
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
