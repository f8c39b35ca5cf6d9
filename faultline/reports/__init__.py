"""Reports: what a run or a campaign came to, told to someone whose store has just failed.

`run_page` and `campaign_page` write one offline HTML file each, `terminal` the same facts as plain lines. All of them
begin with the verdict sentence, show the smallest evidence that convinces, and say how to see it again.
"""
