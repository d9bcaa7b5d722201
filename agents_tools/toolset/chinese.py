"""Translate common words of Chinese tool descriptions, so that English requests match them."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["translations"]

_TRANSLATIONS = """
get 获取 取得
search 搜索 查找 检索
query 查询
create 创建 新建
generate 生成
delete 删除 移除
update 更新
edit 编辑 修改
add 添加 增加 新增
list 列表 列出
show 显示 展示 查看
read 读取
reading 阅读
write 写入
save 保存
send 发送
download 下载
upload 上传
open 打开
close 关闭
convert 转换
translate 翻译
calculate 计算
analyze 分析
extract 提取
recommend 推荐
buy 购买
reserve 预订
pay 支付
play 播放
run 运行 执行
copy 复制
move 移动
compare 比较 对比
summary 摘要 总结
set 设置
file 文件
directory 目录
path 路径
document 文档
table 表格
image 图片 图像
photo 照片
chart 图表
video 视频
music 音乐
audio 音频
data 数据
code 代码
software 软件
device 设备
internet 互联
webpage 网页
website 网站
link 链接
email 邮件 邮箱
message 消息
user 用户
account 账户 账号
password 密码
project 项目
repository 仓库
task 任务
calendar 日历
date 日期
time 时间
meeting 会议
note 笔记
title 标题
content 内容
comment 评论
keyword 关键
language 语言
number 数字
detail 详情 详细
information 信息
news 新闻 资讯 快讯
trending 热榜 热搜 热门 榜单 热点
rank 排行 排名
weather 天气
temperature 温度
map 地图
location 位置 地点
address 地址
route 路线
navigation 导航
distance 距离
city 城市
country 国家
international 国际
global 全球
travel 旅游 旅行
hotel 酒店
restaurant 餐厅
flight 航班
train 火车
ticket 车票 门票
food 美食 食物
recipe 菜谱 食谱
dish 菜品
movie 电影
book 图书 书籍
novel 小说
author 作者
article 文章
paper 论文
game 游戏
sport 体育
entertainment 娱乐
culture 文化
education 教育
science 科学
technology 科技 技术
digital 数码
politics 政治
society 社会
economy 经济
finance 金融 财经
business 商业
company 公司 企业
market 市场
investment 投资
stock 股票
price 价格
currency 货币
exchange 汇率
product 产品 商品
shopping 购物
discount 优惠 折扣
order 订单
consumer 消费
job 职位 工作
health 健康
hospital 医院
doctor 医生
medicine 药品 药物
"""
"""English words, each with Chinese words of two signs; tool search compares pairs of signs."""


@lru_cache(maxsize=1)
def translations() -> dict[str, str]:
    """Return the English words by the Chinese ones."""
    lines = [line.split() for line in _TRANSLATIONS.strip().splitlines()]
    return {chinese: english for english, *others in lines for chinese in others}
